package hooks

// toolHooks is the hooks that concern one tool: what its name rules out is gone,
// what its name settles is not asked again.
type toolHooks struct {
	pre    moment[ToolContext]
	failed moment[ToolFailureContext]
	post   moment[ToolResultContext]
}

// toolTable finds the hooks of a tool by its name. It is built once, for the tools
// that are known.
type toolTable struct {
	all   *Compiled
	names []string // few tools: compared one by one
	hooks []*toolHooks
	index map[string]*toolHooks // many tools
	none  bool                  // no hook concerns any tool call
}

// fewTools is up to how many names are compared one by one: quicker than a map.
const fewTools = 6

func newToolTable(c *Compiled, tools []string) toolTable {
	t := toolTable{all: c, none: c.preTool.empty() && c.toolFailed.empty() && c.postTool.empty()}
	if t.none {
		return t
	}
	if len(tools) > fewTools {
		t.index = map[string]*toolHooks{}
	}
	for _, name := range tools {
		hooks := t.build(name)
		if t.index != nil {
			t.index[name] = hooks
			continue
		}
		t.names, t.hooks = append(t.names, name), append(t.hooks, hooks)
	}
	return t
}

// of is the hooks of the tool of that name, nil when there are none.
func (t *toolTable) of(name string) *toolHooks {
	if t.none {
		return nil
	}
	for i, known := range t.names {
		if known == name {
			return t.hooks[i]
		}
	}
	if t.index != nil {
		if hooks, ok := t.index[name]; ok {
			return hooks
		}
	}
	return t.build(name) // a name that no tool has; not kept, there is no end to them
}

func (t *toolTable) build(name string) *toolHooks {
	h := &toolHooks{
		pre:    concerning(t.all.preTool, name),
		failed: concerning(t.all.toolFailed, name),
		post:   concerning(t.all.postTool, name),
	}
	if h.pre.empty() && h.failed.empty() && h.post.empty() {
		return nil
	}
	return h
}

// concerning is what of a moment a tool's name leaves.
func concerning[C Context](m moment[C], name string) moment[C] {
	narrow := func(list []*entry[C]) []*entry[C] {
		var out []*entry[C]
		for _, e := range list {
			if e.match == nil {
				out = append(out, e)
				continue
			}
			switch e.match.byName(name) {
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
	return moment[C]{narrow(m.controls), narrow(m.observers), narrow(m.detached)}
}
