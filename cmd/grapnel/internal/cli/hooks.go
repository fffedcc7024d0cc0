package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// hooks makes the hooks of an agent file. The error joins what is wrong with any of
// them; a hook that none of the tools can reach is wrong, too, as it guards nothing.
func (m *made) hooks(file *agentfile.File, tools []toolexec.Tool) ([]hooks.Hook, error) {
	var out []hooks.Hook
	var wrong []error
	names := lo.Map(tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	seen := map[string]int{}
	for _, h := range file.Hooks {
		name := h.Kind
		if seen[h.Kind]++; seen[h.Kind] > 1 {
			name = fmt.Sprintf("%s-%d", h.Kind, seen[h.Kind])
		}
		list, err := m.hook(name, h.Settings)
		if err == nil {
			err = reaching(list, names)
		}
		if err != nil {
			wrong = append(wrong, file.Wrong(h.At, fmt.Errorf("the hook %q: %w", h.Kind, err)))
		}
		out = append(out, list...)
	}
	return out, errors.Join(wrong...)
}

// reaching says which of the hooks no call of the tools can reach.
func reaching(list []hooks.Hook, tools []string) error {
	compiled, err := hooks.NewSet(list...).Compile(tools...).Get()
	if err != nil {
		return err
	}
	if len(tools) > 0 && len(compiled.Unused()) > 0 {
		slices.Sort(tools)
		return fmt.Errorf("it matches none of the agent's tools, and would guard nothing; they are %v", tools)
	}
	return nil
}

func (m *made) hook(name string, settings any) ([]hooks.Hook, error) {
	switch s := settings.(type) {
	case *agentfile.Deny:
		return []hooks.Hook{onCalls(cmp.Or(s.Name, name), s.Calls, "it is not allowed here", hooks.ToolContext.Deny)}, nil
	case *agentfile.Ask:
		return []hooks.Hook{onCalls(cmp.Or(s.Name, name), s.Calls, "", hooks.ToolContext.Ask)}, nil
	}
	return nil, fmt.Errorf("nothing is known of settings like %T", settings)
}
