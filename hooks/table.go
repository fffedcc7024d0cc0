package hooks

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/samber/lo"
)

// toolHooks are the hooks for one tool, without hooks that its name excludes. Matchers that depend only on the name are
// not evaluated again.
type toolHooks struct {
	pre    pointHooks[ToolContext]
	failed pointHooks[ToolFailureContext]
	post   pointHooks[ToolResultContext]
	before bool // there are hooks at PreToolUse
	after  bool // there are hooks at ToolFailed or PostToolUse
	filter bool // some of these may remove a part of the result
}

// toolTable finds a tool's hooks by its name. It is built once, for the known tools. For other tools it caches a
// limited number of entries.
type toolTable struct {
	all   *pointTable
	known map[string]*toolHooks // by tool; nil for a tool without hooks
	empty bool                  // no hook concerns any tool call
	late  *lateTools
}

// lateTools caches hooks for tools that were unknown when the table was built, such as tools that an MCP server adds.
// Lookups do not block each other.
type lateTools struct {
	kept  atomic.Pointer[map[string]*toolHooks] // a stored map is never modified
	grows sync.Mutex
}

// Limits for the cache, because a model can call tools by any number of names of any length.
const (
	lateNames      = 256
	lateNameLength = 128
)

func newToolTable(p *pointTable, tools []string) toolTable {
	t := toolTable{all: p, late: &lateTools{}, empty: p.preTool.empty() && p.toolFailed.empty() && p.postTool.empty()}
	if !t.empty {
		t.known = lo.SliceToMap(tools, func(tool string) (string, *toolHooks) { return tool, t.build(tool) })
	}
	return t
}

// hooksFor returns the hooks for the tool with that name; nil when there are none.
func (t *toolTable) hooksFor(tool string) *toolHooks {
	if hooks, ok := t.known[tool]; ok {
		return hooks
	}
	if hooks, ok := t.late.byName()[tool]; ok {
		return hooks
	}
	hooks := t.build(tool)
	t.late.keep(tool, hooks)
	return hooks
}

// byName returns the cached map, which is not modified.
func (l *lateTools) byName() map[string]*toolHooks {
	if kept := l.kept.Load(); kept != nil {
		return *kept
	}
	return nil
}

// keep caches a tool's hooks, unless the cache is full.
func (l *lateTools) keep(tool string, hooks *toolHooks) {
	if len(tool) > lateNameLength || len(l.byName()) >= lateNames {
		return
	}
	l.grows.Lock()
	defer l.grows.Unlock()
	if len(l.byName()) >= lateNames {
		return
	}
	more := map[string]*toolHooks{strings.Clone(tool): hooks} // a copy, because the name may be a part of a long text
	maps.Copy(more, l.byName())
	l.kept.Store(&more)
}

func (t *toolTable) build(tool string) *toolHooks {
	h := &toolHooks{
		pre:    forTool(&t.all.preTool, tool),
		failed: forTool(&t.all.toolFailed, tool),
		post:   forTool(&t.all.postTool, tool),
	}
	h.before, h.after = !h.pre.empty(), !h.failed.empty() || !h.post.empty()
	h.filter = len(h.failed.controls)+len(h.post.controls) > 0
	if !h.before && !h.after {
		return nil
	}
	return h
}

// forTool returns a moment without the hooks that a tool's name excludes.
func forTool[C Context](m *pointHooks[C], tool string) pointHooks[C] {
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
	return pointHooks[C]{controls: narrow(m.controls), observers: narrow(m.observers), detached: narrow(m.detached)}
}
