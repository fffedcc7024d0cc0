package agents

import (
	"cmp"
	"context"
	"fmt"
	"os"
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
	"github.com/grapnel-go/grapnel/registry"
)

// KeyVariable is the environment variable with the key of the store.
const KeyVariable = "GRAPNEL_STORE_KEY"

type hookMaker = registry.Maker[[]hooks.Hook]

// hooks returns the constructors for the names of hooks in agent files.
func (p *Parts) hooks() map[string]hookMaker {
	return map[string]hookMaker{
		"redact": registry.With(func(_ context.Context, _ *registry.Making, s agentfile.Redact) ([]hooks.Hook, error) {
			switch {
			case p.Unclean != nil:
				return nil, p.Unclean
			case s.Replies:
				return []hooks.Hook{p.Clean.Results(), p.Clean.Replies()}, nil
			}
			return []hooks.Hook{p.Clean.Results()}, nil
		}),
		"base-dir": oneHook(func(m *registry.Making, s agentfile.BaseDir) (hooks.Hook, error) {
			h, err := basedir.Guard(p.folder(s.Dir), basedir.Options{Name: cmp.Or(s.Name, m.Name), Also: s.Also, Fields: s.Fields})
			if len(s.Tools) > 0 {
				h = h.Matching(toolsNamed(s.Tools))
			}
			return h, err
		}),
		"rate-limit": oneHook(func(m *registry.Making, s agentfile.RateLimit) (hooks.Hook, error) {
			h := ratelimit.Hook(cmp.Or(s.Name, m.Name), ratelimit.Limit{Calls: int(s.Calls), Per: time.Duration(s.Per), Wait: time.Duration(s.Wait)})
			if len(s.Tools) > 0 {
				h = h.Matching(toolsNamed(s.Tools))
			}
			return h, nil
		}),
		"budget": registry.With(func(_ context.Context, _ *registry.Making, s agentfile.Budget) ([]hooks.Hook, error) {
			return budget.Hooks(budget.Limits{Cost: float64(s.Cost), Tokens: int64(s.Tokens), ToolCalls: int(s.ToolCalls), Deny: s.Deny}), nil
		}),
		"verify": oneHook(func(m *registry.Making, s agentfile.Verify) (hooks.Hook, error) {
			return verify.Hook(verify.Command{Dir: p.folder(s.Dir), Args: s.Command}.Check, verify.Options{
				Name: cmp.Or(s.Name, m.Name), Attempts: int(s.Attempts), Timeout: time.Duration(s.Timeout), Clean: textOf(p.Clean),
			}), nil
		}),
		"audit": registry.With(func(_ context.Context, m *registry.Making, s agentfile.Audit) ([]hooks.Hook, error) {
			key, err := variable("key_env", s.KeyEnv)
			if err != nil {
				return nil, err
			}
			log, err := audit.Open(s.File, audit.Options{Name: m.Name, Content: s.Content, Key: []byte(key), Sync: s.Sync, Clean: textOf(p.Clean)})
			if err != nil {
				return nil, err
			}
			m.Closing(log.Close)
			m.Closing(log.Err)
			return log.Hooks(), nil
		}),
		"policy": registry.With(func(context.Context, *registry.Making, agentfile.Policy) ([]hooks.Hook, error) {
			return nil, p.checkRuled() // the rules are a capability: see ruling
		}),
		"deny-input": oneHook(func(m *registry.Making, s agentfile.DenyInput) (hooks.Hook, error) {
			return onInput(cmp.Or(s.Name, m.Name), &s), nil
		}),
		"deny": oneHook(func(m *registry.Making, s agentfile.Deny) (hooks.Hook, error) {
			return onCalls(cmp.Or(s.Name, m.Name), s.Calls, "it is not allowed here", hooks.ToolContext.Deny), nil
		}),
		"ask": oneHook(func(m *registry.Making, s agentfile.Ask) (hooks.Hook, error) {
			return onCalls(cmp.Or(s.Name, m.Name), s.Calls, "", hooks.ToolContext.Ask), nil
		}),
	}
}

func oneHook[S any](make func(m *registry.Making, s S) (hooks.Hook, error)) hookMaker {
	return registry.With(func(_ context.Context, m *registry.Making, s S) ([]hooks.Hook, error) {
		h, err := make(m, s)
		return []hooks.Hook{h}, err
	})
}

// idle adds a note about a hook without effect when a recording is played, because its tools do nothing real.
func (p *Parts) idle(hook string, err error) error {
	if p.recording == nil {
		return err
	}
	p.notes = append(p.notes, fmt.Sprintf("The hook %q: %v.", hook, err))
	return nil
}

// toolsNamed matches the tools whose names match any of the patterns.
func toolsNamed(patterns []agentfile.Pattern) hooks.Matcher {
	return hooks.Or(lo.Map(patterns, func(p agentfile.Pattern, _ int) hooks.Matcher { return hooks.ToolMatching(string(p)) })...)
}

// variable returns the value of an environment variable that a file names; empty when it names none.
func variable(key string, name registry.EnvName) (string, error) {
	if name == "" {
		return "", nil
	}
	value := os.Getenv(string(name))
	if value == "" {
		return "", fmt.Errorf("%s is %s: this environment variable is not set", key, name)
	}
	return value, nil
}

// Redacting returns the redactor for hooks that write data that no PostToolUse hook has seen; nil when the
// definition does not configure it. The keys of model services are always secrets.
func Redacting(d registry.Definition) (*redact.Redactor, error) {
	part, ok := lo.Find(d.Hooks, func(p registry.Part) bool { return p.Name == "redact" })
	if !ok {
		return nil, nil
	}
	var s agentfile.Redact
	if err := part.Decode(&s); err != nil {
		return nil, err
	}
	secrets := map[string]string{}
	for _, v := range vendors {
		for _, name := range v.keys {
			secrets[name] = os.Getenv(name)
		}
	}
	for _, name := range cloudSecrets {
		secrets[name] = os.Getenv(name)
	}
	secrets[KeyVariable] = os.Getenv(KeyVariable)
	for _, name := range append(s.Env, d.APIKeyEnv) {
		secrets[string(name)] = os.Getenv(string(name))
	}
	delete(secrets, "")
	return redact.New(redact.Options{
		Literals: secrets, Without: s.Without,
		Patterns: lo.Map(s.Patterns, func(p agentfile.Secret, _ int) redact.Pattern {
			return redact.Pattern{Kind: p.Kind, Regexp: p.Matching.String()}
		}),
	})
}

// textOf returns the function of a redactor that cleans texts, or nil without a redactor.
func textOf(r *redact.Redactor) func(string) string {
	if r == nil {
		return nil
	}
	return func(text string) string {
		text, _ = r.Text(text)
		return text
	}
}
