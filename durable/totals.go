package durable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Usage is the stored form of agent.Usage.
type Usage struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`
	// CostUSD is the cost in US dollars; nil if it is unknown.
	CostUSD *float64 `json:"cost_usd"`
}

// UsageOf returns the stored form of a usage.
func UsageOf(u agent.Usage) Usage {
	out := Usage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, u.Cost.ToPointer()}
	if cost := lo.FromPtr(out.CostUSD); math.IsNaN(cost) || math.IsInf(cost, 0) { // JSON has no such numbers
		out.CostUSD = nil
	}
	return out
}

// Decision is a kind of hook decision, for counts.
type Decision string

// The kinds of decisions that a run counts.
const (
	DecisionBlocked   Decision = "blocked"   // the run did not start
	DecisionDenied    Decision = "denied"    // a call, reply or answer was denied, or the run stopped
	DecisionAsked     Decision = "asked"     // people were asked
	DecisionRewritten Decision = "rewritten" // arguments, parameters, an answer or a result were replaced
	DecisionWithheld  Decision = "withheld"  // a result or reply was withheld
	DecisionFailed    Decision = "failed"    // the hook failed
	DecisionTimeout   Decision = "timeout"   // the hook took too long
	DecisionShadow    Decision = "shadow"    // a hook in shadow mode would have decided
	// DecisionOverridden is a decision of people: a person or a waiver approved what the hook asked about, or a run was retried past it.
	DecisionOverridden Decision = "overridden"
)

// Decisions lists the kinds of decisions.
var Decisions = []Decision{
	DecisionBlocked, DecisionDenied, DecisionAsked, DecisionRewritten, DecisionWithheld, DecisionFailed, DecisionTimeout, DecisionShadow,
	DecisionOverridden,
}

// DecisionCount says how often a hook has decided.
type DecisionCount struct {
	Decision Decision `json:"decision"`
	// Hook is the name of the hook. It is empty for the sum of the hooks that maxCounts has left out.
	Hook  string `json:"hook,omitempty"`
	Count int64  `json:"count"`
}

// maxCounts is the maximum number of hooks that a run counts each decision for.
const maxCounts = 20

// CountDecisions returns counts with the decisions of events added. It changes no memory of the counts given.
func CountDecisions(counts []DecisionCount, events []Event) []DecisionCount {
	shared := true
	count := func(decision Decision, hook string) {
		if shared {
			counts, shared = slices.Clone(counts), false
		}
		hook, same := shorten(hook, maxLabel/2), 0
		i := slices.IndexFunc(counts, func(c DecisionCount) bool {
			if c.Decision == decision {
				same++
			}
			return c.Decision == decision && (c.Hook == hook || c.Hook == "" && same > maxCounts)
		})
		if i < 0 {
			counts, i = append(counts, DecisionCount{Decision: decision, Hook: hook}), len(counts)
			if same == maxCounts {
				counts[i].Hook = ""
			}
		}
		counts[i].Count++
	}
	for _, e := range events {
		if e.Decision != "" {
			count(e.Decision, e.Hook)
		}
		for _, d := range e.Also {
			count(d.Decision, d.Hook)
		}
	}
	return counts
}

// summaryLen is the maximum length of Run.Summary and Run.Outcome, in bytes.
const summaryLen = 160

// shorten returns the beginning of text on one line: at most a number of bytes of printable characters.
func shorten(text string, most int) string {
	if len(text) > 4*most {
		text = text[:4*most]
	}
	text = strings.ToValidUTF8(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// summarize returns the beginning of text on one line, as Run.Summary has it.
func summarize(text string) string { return shorten(text, summaryLen) }

// summaryOf returns the summary of a job's input: an agent's last message, the only text of an object, or the beginning of the JSON.
func summaryOf(input []byte) string {
	input, _, err := splitInput(input)
	if text := string(input); err != nil || text == "{}" || text == "null" {
		return ""
	}
	short := summarize(string(input[:min(len(input), 4*summaryLen)]))
	var object map[string]json.RawMessage
	if !bytes.HasPrefix(input, []byte("{")) || json.Unmarshal(input, &object) != nil {
		return short
	}
	var messages []struct {
		Text  string `json:"text"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(object["messages"], &messages) == nil && len(messages) > 0 {
		last := messages[len(messages)-1]
		for _, part := range last.Parts {
			last.Text += part.Text
		}
		return summarize(last.Text)
	}
	var only string
	for _, value := range object {
		if len(object) == 1 && json.Unmarshal(value, &only) == nil {
			return summarize(only)
		}
	}
	return short
}

// HasText reports whether a text is in what lists show of the run, in any case: its ID, name, submitter, labels, summary or outcome.
func (r Run) HasText(text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	in := []string{string(r.ID), r.Name, r.By, r.Summary, r.Outcome}
	for name, value := range r.Labels {
		in = append(in, name+"="+value)
	}
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// OutcomeOf returns the beginning of a stored Result on one line; empty for other data.
func OutcomeOf(result []byte) string {
	var r Result
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	return summarize(cmp.Or(r.Error, r.Text, string(r.Data)))
}
