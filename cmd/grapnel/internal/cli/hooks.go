package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/hooks/budget"
	"github.com/grapnel-go/grapnel/hooks/ratelimit"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/hooks/verify"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// hooks makes the hooks of an agent file. The error joins what is wrong with any of
// them; a hook that none of the tools can reach is wrong, too, as it guards nothing.
func (m *made) hooks(file *agentfile.File, tools []toolexec.Tool) ([]hooks.Hook, error) {
	var out []hooks.Hook
	var wrong []error
	names := lo.Map(tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	seen := map[string]int{}
	clean, err := m.redacting(file)
	if err != nil {
		return nil, err
	}
	for _, h := range file.Hooks {
		name := h.Kind
		if seen[h.Kind]++; seen[h.Kind] > 1 {
			name = fmt.Sprintf("%s-%d", h.Kind, seen[h.Kind])
		}
		list, err := m.hook(name, h.Settings, clean)
		if idle := reaching(list, patternsOf(h.Settings), names); err == nil && idle != nil {
			if err = idle; m.recording != nil { // its tools are what they were
				m.notes = append(m.notes, fmt.Sprintf("The hook %q: %v.", h.Kind, err))
				err = nil
			}
		}
		if err != nil {
			wrong = append(wrong, h.At.Error(fmt.Errorf("the hook %q: %w", h.Kind, err)))
		}
		out = append(out, list...)
	}
	return out, errors.Join(wrong...)
}

// reaching says which hook, or which of the patterns that it was given, no call of
// the tools can reach.
func reaching(list []hooks.Hook, patterns []agentfile.Pattern, tools []string) error {
	if len(tools) == 0 {
		return nil
	}
	slices.Sort(tools)
	for _, p := range patterns {
		probe := hooks.Observe(hooks.AtPreToolUse, "probe", func(context.Context, hooks.ToolContext) error { return nil }, hooks.ToolMatching(string(p)))
		if unused(tools, probe) {
			near, ok := yamlfile.Nearest(string(p), tools)
			return fmt.Errorf("%q matches none of the agent's tools%s, and would guard nothing; they are %v", p,
				lo.Ternary(ok, fmt.Sprintf(" (did you mean %q?)", near), ""), tools)
		}
	}
	if unused(tools, list...) {
		return fmt.Errorf("it matches none of the agent's tools, and would guard nothing; they are %v", tools)
	}
	return nil
}

// unused reports whether one of the hooks cannot be reached. What is wrong with a
// hook besides is said when the agent is built.
func unused(tools []string, list ...hooks.Hook) bool {
	compiled, err := hooks.NewSet(list...).Compile(tools...).Get()
	return err == nil && len(compiled.Unused()) > 0
}

// patternsOf is the patterns for tools that a hook was given.
func patternsOf(settings any) []agentfile.Pattern {
	switch s := settings.(type) {
	case *agentfile.BaseDir:
		return s.Tools
	case *agentfile.RateLimit:
		return s.Tools
	case *agentfile.Deny:
		return s.Tools
	case *agentfile.Ask:
		return s.Tools
	}
	return nil
}

// hook makes a hook, or the several that belong together. Clean is nil where nothing
// is redacted.
func (m *made) hook(name string, settings any, clean *redact.Redactor) ([]hooks.Hook, error) {
	switch s := settings.(type) {
	case *agentfile.Redact:
		if s.Replies {
			return []hooks.Hook{clean.Results(), clean.Replies()}, nil
		}
		return []hooks.Hook{clean.Results()}, nil
	case *agentfile.BaseDir:
		h, err := basedir.Guard(cmp.Or(s.Dir, "."), basedir.Options{Name: cmp.Or(s.Name, name), Also: s.Also, Fields: s.Fields})
		if len(s.Tools) > 0 && err == nil {
			h = h.Matching(toolsNamed(s.Tools))
		}
		return []hooks.Hook{h}, err
	case *agentfile.RateLimit:
		limit := ratelimit.Limit{Calls: int(s.Calls), Per: time.Duration(s.Per), Wait: time.Duration(s.Wait)}
		if len(s.Tools) == 0 {
			return []hooks.Hook{ratelimit.Hook(cmp.Or(s.Name, name), limit)}, nil
		}
		return []hooks.Hook{ratelimit.Hook(cmp.Or(s.Name, name), limit, toolsNamed(s.Tools))}, nil
	case *agentfile.Budget:
		return budget.Hooks(budget.Limits{Cost: float64(s.Cost), Tokens: int64(s.Tokens), ToolCalls: int(s.ToolCalls), Deny: s.Deny}), nil
	case *agentfile.Verify:
		check := verify.Command{Dir: s.Dir, Args: s.Command}.Check
		return []hooks.Hook{verify.Hook(check, verify.Options{
			Name: cmp.Or(s.Name, name), Attempts: int(s.Attempts), Timeout: time.Duration(s.Timeout), Clean: textOf(clean),
		})}, nil
	case *agentfile.Audit:
		key, err := variable("key_env", s.KeyEnv)
		if err != nil {
			return nil, err
		}
		log, err := audit.Open(s.File, audit.Options{Name: name, Content: s.Content, Key: []byte(key), Sync: s.Sync, Clean: textOf(clean)})
		if err != nil {
			return nil, err
		}
		m.closing = append(m.closing, log.Close, log.Err)
		return log.Hooks(), nil
	case *agentfile.DenyInput:
		return []hooks.Hook{onInput(cmp.Or(s.Name, name), s)}, nil
	case *agentfile.Deny:
		return []hooks.Hook{onCalls(cmp.Or(s.Name, name), s.Calls, "it is not allowed here", hooks.ToolContext.Deny)}, nil
	case *agentfile.Ask:
		return []hooks.Hook{onCalls(cmp.Or(s.Name, name), s.Calls, "", hooks.ToolContext.Ask)}, nil
	}
	return nil, fmt.Errorf("nothing is known of settings like %T", settings)
}

// toolsNamed matches the tools that any of the patterns names.
func toolsNamed(patterns []agentfile.Pattern) hooks.Matcher {
	return hooks.Or(lo.Map(patterns, func(p agentfile.Pattern, _ int) hooks.Matcher { return hooks.ToolMatching(string(p)) })...)
}

// variable is the value of a variable of the environment that a file names; empty
// where it names none.
func variable(key string, name agentfile.EnvName) (string, error) {
	if name == "" {
		return "", nil
	}
	value := os.Getenv(string(name))
	if value == "" {
		return "", fmt.Errorf("%s is %s: this variable of the environment is not set", key, name)
	}
	return value, nil
}

// redacting is what takes secrets out, for the hooks that write or tell what no
// PostToolUse hook has seen, too; nil where the file does not ask for it. The keys of
// model services are secrets in any case.
func (m *made) redacting(file *agentfile.File) (*redact.Redactor, error) {
	for _, h := range file.Hooks {
		s, ok := h.Settings.(*agentfile.Redact)
		if !ok {
			continue
		}
		secrets := map[string]string{}
		for _, v := range vendors {
			for _, name := range v.keys {
				secrets[name] = os.Getenv(name)
			}
		}
		secrets[keyVariable] = os.Getenv(keyVariable)
		for _, name := range append(s.Env, file.APIKeyEnv) {
			secrets[string(name)] = os.Getenv(string(name))
		}
		delete(secrets, "")
		redactor, err := redact.New(redact.Options{
			Literals: secrets, Without: s.Without,
			Patterns: lo.Map(s.Patterns, func(p agentfile.Secret, _ int) redact.Pattern {
				return redact.Pattern{Kind: p.Kind, Regexp: p.Matching.String()}
			}),
		})
		if err != nil {
			return nil, h.At.Error(fmt.Errorf("the hook %q: %w", h.Kind, err))
		}
		return redactor, nil
	}
	return nil, nil
}

// textOf is how a redactor cleans a text; nil where there is none.
func textOf(r *redact.Redactor) func(string) string {
	if r == nil {
		return nil
	}
	return func(text string) string {
		text, _ = r.Text(text)
		return text
	}
}
