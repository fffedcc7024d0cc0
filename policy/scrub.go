package policy

import (
	"regexp"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// secretKinds and piiKinds return the kinds that a rule can redact. The first compiles every pattern of package redact.
var (
	secretKinds = sync.OnceValue(redact.Kinds)
	piiKinds    = sync.OnceValue(pii.Kinds)
)

// scrubber redacts text for a rule with decision: redact. It is immutable after make and safe for concurrent use.
type scrubber struct {
	secrets  *redact.Redactor
	personal *pii.Filter
	patterns []*regexp.Regexp
	with     string
}

func (s *scrubber) empty() bool { return s.secrets == nil && s.personal == nil && len(s.patterns) == 0 }

// make prepares the scrubber for kinds of secrets and personal data. Patterns without a replacement text are treated
// like secrets, which are also found in JSON and files.
func (s *scrubber) make(secrets, personal []string) (err error) {
	o := redact.Options{}
	if s.with == "" {
		for _, p := range s.patterns {
			o.Patterns = append(o.Patterns, redact.Pattern{Kind: "pattern", Regexp: p.String()})
		}
		s.patterns = nil
	}
	if len(secrets)+len(o.Patterns) > 0 {
		o.Without, _ = lo.Difference(secretKinds(), secrets)
		if s.secrets, err = redact.New(o); err != nil {
			return err
		}
	}
	if len(personal) > 0 {
		s.personal, err = pii.New(pii.Options{Kinds: personal})
	}
	return err
}

// text returns the redacted text.
func (s *scrubber) text(text string) string {
	if s.secrets != nil {
		text, _ = s.secrets.Text(text)
	}
	if s.personal != nil {
		text, _ = s.personal.Text(text)
	}
	for _, p := range s.patterns {
		text = p.ReplaceAllLiteralString(text, s.with)
		find := func(visible invisible.Text) []invisible.Match { return s.find(p, visible.Visible) }
		text = invisible.ReplaceOverBreaks(invisible.Replace(text, find), find)
	}
	return text
}

// find returns a pattern's matches.
func (s *scrubber) find(pattern *regexp.Regexp, text string) []invisible.Match {
	return lo.FilterMap(pattern.FindAllStringIndex(text, -1), func(at []int, _ int) (invisible.Match, bool) {
		return invisible.Match{From: at[0], To: at[1], Start: at[0], End: at[1], With: func() string { return s.with }}, at[0] < at[1]
	})
}

// at returns the answer at a point: a filter at points with filters. Elsewhere it has no opinion if there is nothing to
// redact.
func (s *scrubber) at(c hooks.Context, effects []agent.Effect) hooks.Result {
	switch c := c.(type) {
	case interface {
		Filter(f func(text string) string, effects ...agent.Effect) hooks.Result
	}:
		return c.Filter(s.text, effects...)
	case hooks.PostSubagentContext:
		return c.Filter(s.text)
	case interface {
		Messages() []agent.Message
		Rewrite(messages []agent.Message, effects ...agent.Effect) hooks.Result
	}:
		if messages, changed := s.messages(c.Messages()); changed {
			return c.Rewrite(messages, effects...)
		}
	case hooks.InferenceContext:
		var shown []agent.Message
		for _, m := range c.Messages() {
			shown = append(shown, m)
		}
		if messages, changed := s.messages(shown); changed {
			return c.RewriteMessages(messages, effects...)
		}
	case hooks.RunResultContext:
		run := c.BlueprintRun()
		text, data := s.text(run.ResultText), s.text(string(run.ResultData))
		if text != run.ResultText || data != string(run.ResultData) {
			return c.Replace(lo.CoalesceOrEmpty(text, data), effects...)
		}
	}
	return hooks.Result{}
}

func (s *scrubber) messages(list []agent.Message) ([]agent.Message, bool) {
	found := false
	out := make([]agent.Message, len(list))
	for i, m := range list {
		content := m.Content().MapText(s.text)
		if out[i] = m; !content.Equal(m.Content()) {
			out[i], found = m.WithContent(content), true
		}
	}
	return out, found
}
