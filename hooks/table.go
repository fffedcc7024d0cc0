package hooks

import "github.com/samber/lo"

// toolHooks is the hooks that concern one tool: what its name rules out is gone,
// what its name settles is not asked again.
type toolHooks struct {
	pre    moment[ToolContext]
	failed moment[ToolFailureContext]
	post   moment[ToolResultContext]
	before bool // there are some at PreToolUse
	after  bool // there are some at ToolFailed or PostToolUse
}

// toolTable finds the hooks of a tool by its name. It is built once, for the tools
// that are known.
type toolTable struct {
	all   *Compiled
	few   []namedHooks          // nil unless there are few
	many  map[string]*toolHooks // nil unless there are many
	empty bool                  // no hook concerns any tool call
}

type namedHooks struct {
	tool  string
	hooks *toolHooks // nil: no hook concerns the tool
}

// fewTools is up to how many tools a look at each is quicker than a map.
const fewTools = 8

func newToolTable(c *Compiled, tools []string) toolTable {
	t := toolTable{all: c, empty: c.preTool.empty() && c.toolFailed.empty() && c.postTool.empty()}
	switch {
	case t.empty:
	case len(tools) > fewTools:
		t.many = lo.SliceToMap(tools, func(tool string) (string, *toolHooks) { return tool, t.build(tool) })
	default:
		t.few = lo.Map(lo.Uniq(tools), func(tool string, _ int) namedHooks { return namedHooks{tool, t.build(tool)} })
	}
	return t
}

// of is the hooks of the tool of that name, nil when there are none.
func (t *toolTable) of(tool string) *toolHooks {
	for i := range t.few {
		if t.few[i].tool == tool {
			return t.few[i].hooks
		}
	}
	if hooks, ok := t.many[tool]; ok {
		return hooks
	}
	return t.build(tool) // a name that no tool has; not kept, there is no end to them
}

func (t *toolTable) build(tool string) *toolHooks {
	h := &toolHooks{
		pre:    concerning(&t.all.preTool, tool),
		failed: concerning(&t.all.toolFailed, tool),
		post:   concerning(&t.all.postTool, tool),
	}
	h.before, h.after = !h.pre.empty(), !h.failed.empty() || !h.post.empty()
	if !h.before && !h.after {
		return nil
	}
	return h
}

// concerning is what of a moment a tool's name leaves.
func concerning[C Context](m *moment[C], tool string) moment[C] {
	narrow := func(list []*entry[C]) []*entry[C] {
		var out []*entry[C]
		for _, e := range list {
			switch e.byName(tool) {
			case yes:
				settled := *e
				settled.match = nil
				out = append(out, &settled)
			case maybe:
				out = append(out, e)
			}
		}
		return out
	}
	return moment[C]{controls: narrow(m.controls), observers: narrow(m.observers), detached: narrow(m.detached)}.withPlain()
}
