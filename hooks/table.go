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
	few   []namedHooks          // by slotOf, with gaps; nil unless there are few
	many  map[string]*toolHooks // nil unless there are many
	empty bool                  // no hook concerns any tool call
}

type namedHooks struct {
	tool  string     // empty: a gap
	hooks *toolHooks // nil: no hook concerns the tool
}

// Few tools are found by a glance at their names, which is quicker than a map as
// long as they are few.
const (
	fewTools = 16
	slots    = 4 * fewTools // so that there are gaps, whatever the names
)

func newToolTable(c *Compiled, tools []string) toolTable {
	t := toolTable{all: c, empty: c.preTool.empty() && c.toolFailed.empty() && c.postTool.empty()}
	switch {
	case t.empty:
	case len(tools) > fewTools:
		t.many = lo.SliceToMap(tools, func(tool string) (string, *toolHooks) { return tool, t.build(tool) })
	default:
		t.few = make([]namedHooks, slots)
		for _, tool := range lo.Without(lo.Uniq(tools), "") {
			at := slotOf(tool)
			for t.few[at].tool != "" {
				at = (at + 1) % slots
			}
			t.few[at] = namedHooks{tool, t.build(tool)}
		}
	}
	return t
}

// slotOf is where to look for a name first.
func slotOf(tool string) uint {
	n := len(tool)
	if n == 0 {
		return 0
	}
	return (uint(n) + 3*uint(tool[0]) + 7*uint(tool[n/2]) + 13*uint(tool[n-1])) % slots
}

// of is the hooks of the tool of that name, nil when there are none.
func (t *toolTable) of(tool string) *toolHooks {
	if t.few != nil {
		few := (*[slots]namedHooks)(t.few)
		for at := slotOf(tool); few[at].tool != ""; at = (at + 1) % slots {
			if few[at].tool == tool {
				return few[at].hooks
			}
		}
	} else if hooks, ok := t.many[tool]; ok {
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
