package hookstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// complaints collects a check's complaints.
type complaints []string

func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

// A case that is not met is told with what came of it.
func TestCaseSaysWhatIsWrong(t *testing.T) {
	denied := Fired{Point: hooks.PreToolUse, Decision: hooks.Deny, Hook: "guard", Reason: "not on a Sunday"}
	for name, tc := range map[string]struct {
		wanted Case
		got    Fired
		want   []string // parts of the complaints, in order
	}{
		"met":                 {Case{Want: hooks.Deny, Saying: "Sunday"}, denied, nil},
		"nothing is wanted":   {Case{}, Fired{Decision: hooks.Pass}, nil},
		"another decision":    {Case{Want: hooks.Allow}, denied, []string{"PreToolUse: deny by guard: not on a Sunday"}},
		"wants no opinion":    {Case{}, denied, []string{`"pass"`}},
		"another reason":      {Case{Want: hooks.Deny, Saying: "Monday"}, denied, []string{`"not on a Sunday" does not contain "Monday"`}},
		"another text":        {Case{Want: hooks.Deny, Leaving: "x"}, denied, []string{`"x"`}},
		"everything is wrong": {Case{Saying: "Monday", Leaving: "x"}, denied, []string{`"pass"`, "Monday", `"x"`}},
		"not called":          {Case{Want: hooks.Allow}, Fired{Decision: hooks.Pass}, []string{"pass (no hook was called)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got complaints
			tc.wanted.check(&got, tc.got)
			if assert.Len(t, got, len(tc.want), strings.Join(got, "\n")) {
				for i, part := range tc.want {
					assert.Contains(t, got[i], part)
				}
			}
		})
	}
}
