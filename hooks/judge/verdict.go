package judge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// verdict is a judge's answer.
type verdict struct {
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

const (
	allow = "allow"
	deny  = "deny"
)

// schema is a verdict's JSON schema.
const schema = `{"type":"object","properties":{` +
	`"verdict":{"type":"string","enum":["allow","deny"]},` +
	`"reason":{"type":"string","description":"one sentence that says why"}},` +
	`"required":["verdict","reason"],"additionalProperties":false}`

func (v verdict) denied() bool { return v.Verdict != allow }

// verdictOf reads the verdict from a reply. A reply that is not exactly a verdict is an
// error.
func verdictOf(reply agent.Step) (verdict, error) {
	if reply.Message.CallCount() > 0 {
		return verdict{}, fmt.Errorf("the judge called the tool %q instead of giving a verdict", reply.Message.Call(0).Name)
	}
	text := strings.TrimSpace(reply.Message.Text())
	err := strictjson.CheckObject(text)
	var v verdict
	if err == nil {
		err = strictjson.UnmarshalStrict(text, &v)
	}
	switch {
	case err != nil:
		return verdict{}, fmt.Errorf("the judge gave no verdict: %w", err)
	case v.Verdict != allow && v.Verdict != deny:
		return verdict{}, fmt.Errorf("unknown verdict %.40q: expected allow or deny", v.Verdict)
	case v.denied() && strings.TrimSpace(v.Reason) == "":
		return verdict{}, errors.New("the judge denied without a reason")
	}
	return v, nil
}
