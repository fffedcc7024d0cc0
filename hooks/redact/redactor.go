package redact

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Options configures which texts are secrets, in addition to the well-known kinds. The zero value holds the defaults.
type Options struct {
	// Literals maps kinds, such as an environment variable's name, to secrets. Surrounding white space is ignored. The
	// rest must have four bytes or more. Empty secrets, from unset variables, are ignored.
	Literals map[string]string
	// Patterns holds your own patterns. They take precedence over the well-known kinds.
	Patterns []Pattern
	// Without lists the well-known kinds that are not replaced; see Kinds.
	Without []string
	// Told, unless nil, is called for each result or reply in which a secret was replaced. It must be quick and safe
	// for concurrent use.
	Told func(ctx context.Context, r Report)
}

// Pattern is a regular expression in RE2 syntax for one kind of secret. If it has groups, the first group is the
// secret. Otherwise the whole match is.
type Pattern struct {
	Kind   string
	Regexp string
}

// Report describes the replaced secrets.
type Report struct {
	Run agent.Run
	// Point is the hook's point. Tool and CallID identify the result's call. Both are empty for a reply.
	Point  hooks.PointName
	Tool   string
	CallID string
	// Counts is how often each kind was replaced.
	Counts Counts
}

// Counts is how often each kind of secret was replaced. It is empty, not nil, when no secret was replaced.
type Counts map[string]int

// Redactor replaces secrets. Create one with New.
type Redactor struct {
	literals []literal
	rules    []rule
	numbers  bool // a number can be a secret, too
	told     func(context.Context, Report)
}

// New returns a redactor, or an error that joins all problems of the options.
func New(o Options) (*Redactor, error) {
	r := &Redactor{told: o.Told, numbers: len(o.Patterns) > 0}
	var wrong []error
	for kind, secret := range o.Literals {
		secret = strings.TrimSpace(secret) // a file with a secret usually ends in a line end
		if secret != "" && len(secret) < 4 {
			wrong = append(wrong, fmt.Errorf("the literal %q has less than 4 bytes: it would match everywhere", kind))
		} else if secret != "" {
			r.literals = append(r.literals, writtenForms(kind, secret)...)
			r.numbers = r.numbers || strings.Trim(secret, "0123456789+-.eE") == ""
			if rule, ok := escapedRule(kind, secret); ok {
				r.rules = append(r.rules, rule)
			}
		}
	}
	// Long secrets come first, because a secret can be part of another.
	slices.SortFunc(r.literals, func(a, b literal) int {
		return lo.CoalesceOrEmpty(len(b.text)-len(a.text), strings.Compare(a.text, b.text), strings.Compare(a.kind, b.kind))
	})
	slices.SortFunc(r.rules, func(a, b rule) int {
		x, y := a.re.String(), b.re.String()
		return lo.CoalesceOrEmpty(len(y)-len(x), strings.Compare(x, y), strings.Compare(a.kind, b.kind))
	})
	for _, p := range o.Patterns {
		re, err := regexp.Compile(p.Regexp)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("pattern of %q: %w", p.Kind, err))
		case re.MatchString(""):
			wrong = append(wrong, fmt.Errorf("pattern of %q: it matches the empty text: require at least one character", p.Kind))
		default:
			r.rules = append(r.rules, rule{kind: p.Kind, re: re})
		}
	}
	for _, kind := range o.Without {
		if !slices.Contains(Kinds(), kind) {
			wrong = append(wrong, fmt.Errorf("unknown kind %q in Without: expected one of %s", kind, strings.Join(Kinds(), ", ")))
		}
	}
	for _, p := range o.Patterns {
		wrong = append(wrong, checkKind(p.Kind))
	}
	for kind := range o.Literals {
		wrong = append(wrong, checkKind(kind))
	}
	r.rules = append(r.rules, lo.Reject(wellKnown(), func(w rule, _ int) bool { return slices.Contains(o.Without, w.kind) })...)
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("creating a redactor: %w", err)
	}
	return r, nil
}

// checkKind returns an error for a kind that could break the text around its mark.
func checkKind(kind string) error {
	if kind == "" || strings.ContainsFunc(kind, func(r rune) bool { return r < ' ' || strings.ContainsRune(`"\[]`, r) }) {
		return fmt.Errorf("invalid kind %q: expected one or two words without quotes, brackets and backslashes", kind)
	}
	return nil
}

// Results returns the hook at PostToolUse, "redact", that replaces secrets in every text that a tool call leaves. See
// hooks.ToolResultContext.Filter.
func (r *Redactor) Results() hooks.Hook {
	return hooks.On(hooks.AtPostToolUse, "redact", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		result := c.Result()
		return c.Filter(r.filter(ctx, Report{Run: c.Run(), Point: c.Point(), Tool: c.Tool(), CallID: result.CallID()}, result.Content, result.Err))
	}).WithPriority(hooks.PriorityGuard)
}

// Replies returns the hook at PostInference, "redact-replies", that replaces secrets in every text that a model call
// leaves, including tool calls' arguments: see hooks.ReplyContext.Filter.
func (r *Redactor) Replies() hooks.Hook {
	return hooks.On(hooks.AtPostInference, "redact-replies", func(ctx context.Context, c hooks.ReplyContext) hooks.Result {
		return c.Filter(r.filter(ctx, Report{Run: c.Run(), Point: c.Point()}, c.Reply().Message.Content(), c.Err()))
	}).WithPriority(hooks.PriorityGuard)
}

// filter returns a func that replaces secrets. Told gets one report: about the content if it has a secret, otherwise
// about the error, otherwise about the first text with a secret.
func (r *Redactor) filter(ctx context.Context, about Report, content agent.Content, err error) func(string) string {
	if r.told == nil {
		return func(text string) string { text, _ = r.Text(text); return text }
	}
	_, about.Counts = r.Content(content)
	if len(about.Counts) == 0 && err != nil {
		_, about.Counts = r.Text(fmt.Sprint(err))
	}
	r.tell(ctx, about)
	return func(text string) string {
		after, counts := r.Text(text)
		if len(about.Counts) == 0 {
			about.Counts = counts
			r.tell(ctx, about)
		}
		return after
	}
}

func (r *Redactor) tell(ctx context.Context, report Report) {
	if r.told != nil && len(report.Counts) > 0 {
		r.told(ctx, report)
	}
}
