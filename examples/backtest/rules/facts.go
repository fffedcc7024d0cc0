package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Facts are what an operator knows about the accounts before there is a task.
type Facts struct {
	Banking struct {
		OwnIBAN string   `json:"own_iban"`
		Payees  []string `json:"past_and_scheduled_payees"`
	} `json:"banking"`
	Workspace struct {
		InternalDomain string   `json:"internal_domain"` // "example.com"
		KnownAddresses []string `json:"known_addresses"`
	} `json:"workspace"`
	Slack struct {
		CompanySite string `json:"company_site"` // a host name: "www.example.com"
	} `json:"slack"`

	// ReadOnly lists, by suite, the tools that only read.
	ReadOnly map[string]ToolNames `json:"read_only_tools"`
}

// LoadFacts reads a file of facts, as ParseFacts does.
func LoadFacts(path string) (Facts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Facts{}, fmt.Errorf("load facts: %w", err)
	}
	facts, err := ParseFacts(text)
	if err != nil {
		return Facts{}, fmt.Errorf("load facts %q: %w", path, err)
	}
	return facts, nil
}

// ParseFacts reads facts, a JSON object. It ignores members without a field in Facts.
func ParseFacts(text []byte) (Facts, error) {
	var facts Facts
	err := strictjson.Unmarshal(text, &facts)
	return facts, err
}

// ToolNames is a set of tools: names, or beginnings of names with a star at the end, "get_*".
type ToolNames []string

// Has reports whether the set contains the tool.
func (n ToolNames) Has(tool string) bool {
	return slices.ContainsFunc(n, func(name string) bool {
		beginning, open := strings.CutSuffix(name, "*")
		return name == tool || open && strings.HasPrefix(tool, beginning)
	})
}

// UnmarshalJSON reads a list of names, or the sentence "every get_*, check_*".
func (n *ToolNames) UnmarshalJSON(data []byte) error {
	var sentence string
	if json.Unmarshal(data, &sentence) != nil {
		return json.Unmarshal(data, (*[]string)(n))
	}
	names, ok := strings.CutPrefix(sentence, "every ")
	if !ok {
		return fmt.Errorf(`expected a list of tools or a sentence like "every get_*, check_*", got %q`, sentence)
	}
	*n = strings.Split(names, ", ")
	return nil
}
