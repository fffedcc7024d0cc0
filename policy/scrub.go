package policy

import (
	"regexp"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/hooks/redact"
)

// What can be taken out.
var (
	secretKinds = redact.Kinds()
	piiKinds    = pii.Kinds()
)

// scrubber takes out what a rule with decision: redact names. It is immutable once made
// and safe for concurrent use.
type scrubber struct {
	secrets  *redact.Redactor
	personal *pii.Filter
	patterns []*regexp.Regexp
	with     string
}

func (s *scrubber) empty() bool { return s.secrets == nil && s.personal == nil && len(s.patterns) == 0 }

// make prepares it for kinds of secrets and of personal data. Patterns without a text of
// their own to stand in their place are looked for as secrets are: in JSON and files, too.
func (s *scrubber) make(secrets, personal []string) (err error) {
	o := redact.Options{}
	if s.with == "" {
		for _, p := range s.patterns {
			o.Patterns = append(o.Patterns, redact.Pattern{Kind: "pattern", Regexp: p.String()})
		}
		s.patterns = nil
	}
	if len(secrets)+len(o.Patterns) > 0 {
		o.Without, _ = lo.Difference(secretKinds, secrets)
		if s.secrets, err = redact.New(o); err != nil {
			return err //nolint:wrapcheck // the loader says of which rule
		}
	}
	if len(personal) > 0 {
		s.personal, err = pii.New(pii.Options{Kinds: personal})
	}
	return err //nolint:wrapcheck // the loader says of which rule
}

// content is content without what is to be taken out, and whether there was any of it.
func (s *scrubber) content(content agent.Content) (agent.Content, bool) {
	before := content
	if s.secrets != nil {
		content, _ = s.secrets.Content(content)
	}
	if s.personal != nil {
		content, _ = s.personal.Content(content)
	}
	if len(s.patterns) > 0 {
		var parts []agent.Part
		for _, p := range content.Parts() {
			if after := s.plain(p.Text); p.Kind == agent.PartText && after != p.Text {
				p.Text, p.Opaque = after, ""
			}
			parts = append(parts, p)
		}
		content = agent.ContentOf(parts...)
	}
	return content, !content.Equal(before)
}

func (s *scrubber) plain(text string) string {
	for _, p := range s.patterns {
		text = p.ReplaceAllLiteralString(text, s.with)
	}
	return text
}

// text is a text without what is to be taken out.
func (s *scrubber) text(text string) string {
	content, _ := s.content(agent.TextContent(text))
	return content.Text()
}

// at answers at a point. Where there is nothing to take out it has no opinion.
func (s *scrubber) at(c hooks.Context, effects []agent.Effect) hooks.Result {
	switch c := c.(type) {
	case interface {
		Result() agent.ToolResult
		ReplaceContent(content agent.Content, effects ...agent.Effect) hooks.Result
	}:
		if content, changed := s.content(c.Result().Content); changed {
			return c.ReplaceContent(content, effects...)
		}
	case hooks.ReplyContext:
		reply := c.Reply()
		if content, changed := s.content(reply.Message.Content()); changed {
			reply.Message = reply.Message.WithContent(content)
			return c.Replace(reply, effects...)
		}
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
	case hooks.PostSubagentContext:
		before := c.Subagent().Result
		if after := s.text(before); after != before {
			return c.Replace(after)
		}
	}
	return hooks.Result{}
}

func (s *scrubber) messages(list []agent.Message) ([]agent.Message, bool) {
	found := false
	out := make([]agent.Message, len(list))
	for i, m := range list {
		content, changed := s.content(m.Content())
		if out[i] = m; changed {
			out[i], found = m.WithContent(content), true
		}
	}
	return out, found
}
