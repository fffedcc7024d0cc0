package claudehooks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// The types of handlers.
const (
	kindCommand = "command"
	kindHTTP    = "http"
	kindTool    = "mcp_tool"
	kindPrompt  = "prompt"
	kindAgent   = "agent"
)

// handler is one entry in a matcher group.
type handler struct {
	source
	event   string
	matcher matcher
	only    condition
	kind    string

	command string
	args    []string // for the exec form; nil for the shell form
	shell   string
	url     string
	headers map[string]string
	allowed []string // the variables that headers may name
	server  string
	tool    string
	input   json.RawMessage
	prompt  string
	model   string

	timeout     time.Duration
	isAsync     bool
	wakes       bool
	onFailure   string // empty means the default
	mayContinue bool   // continueOnBlock

	place yamlfile.Place
	// key is equal for handlers that run only once.
	key string
	// scripts are the hashes of the files that the command names.
	scripts map[string]string
}

// source is the file that handlers come from.
type source struct {
	file string
	// plugin is the plugin's folder, and data its folder for data. Both are empty for settings.
	plugin, data string
	// isProject reports whether the file and its scripts may come from a repository.
	isProject bool
}

// label names the handler for people.
func (h *handler) label() string {
	switch h.kind {
	case kindHTTP:
		return h.url
	case kindTool:
		return "mcp__" + h.server + "__" + h.tool
	case kindPrompt, kindAgent:
		return h.kind
	}
	return strings.Join(append([]string{h.command}, h.args...), " ")
}

// Warning is a finding about a settings file or a script that does not prevent loading.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Text)
}

// reader reads settings files.
type reader struct {
	set      *Set
	files    []*yamlfile.File
	warnings []Warning
	isOff    bool
}

func (r *reader) warn(at yamlfile.Node, format string, args ...any) {
	r.warnAt(at.Place(), format, args...)
}

func (r *reader) warnAt(p yamlfile.Place, format string, args ...any) {
	w := Warning{p.File(), p.Line, p.Column, fmt.Sprintf(format, args...)}
	if !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// wrong reports what prevents a handler from running: a mistake, or only a warning if failures do not block.
func (r *reader) wrong(at yamlfile.Node, format string, args ...any) {
	if r.set.options.Compat {
		r.warn(at, format+": it never runs", args...)
		return
	}
	at.Wrong(format, args...)
}

// IsSettings reports whether a JSON file has hooks like Claude Code's settings: lists of groups that contain a list named
// hooks.
func IsSettings(path string) bool {
	if filepath.Ext(path) != ".json" {
		return false
	}
	text, err := yamlfile.Read(path)
	if err != nil {
		return false
	}
	var root struct {
		Policy json.RawMessage              `json:"policy"`
		Hooks  map[string][]json.RawMessage `json:"hooks"`
	}
	if json.Unmarshal(text, &root) != nil || root.Policy != nil || root.Hooks == nil {
		return false
	}
	for name, groups := range root.Hooks {
		if _, known := events[name]; known && len(groups) == 0 {
			return true
		}
		for _, raw := range groups {
			var group map[string]json.RawMessage
			if json.Unmarshal(raw, &group) == nil && group["hooks"] != nil {
				return true
			}
		}
	}
	return len(root.Hooks) == 0
}

// read reads one file.
func (r *reader) read(path string, text []byte) []*handler {
	f := yamlfile.Parse(path, text)
	r.files = append(r.files, f)
	root, ok := f.Root()
	if !ok {
		return nil
	}
	from := r.sourceOf(path)
	if off := root.Find("disableAllHooks"); off.Kind() == yamlfile.BoolNode && off.Raw() == "true" {
		r.isOff = true
		r.warn(off, "disableAllHooks: no hook runs, in any of the files")
	}
	r.narrow(root.Find("allowedHttpHookUrls"), &r.set.urls)
	r.narrow(root.Find("httpHookAllowedEnvVars"), &r.set.headerNames)
	if managed := root.Find("allowManagedHooksOnly"); managed.Kind() != yamlfile.AbsentNode {
		r.warn(managed, "allowManagedHooksOnly has no effect: there are no managed settings here")
	}
	all := root.Find("hooks")
	if all.Kind() == yamlfile.AbsentNode {
		r.warn(root, "the file has no hooks")
		return nil
	}
	var out []*handler
	for _, e := range all.Entries() {
		name := e.Key.Raw()
		known, ok := events[name]
		switch {
		case !ok:
			hint := ""
			if meant, ok := near.Name(name, slices.Sorted(maps.Keys(events))); ok {
				hint = fmt.Sprintf(": did you mean %s?", meant)
			}
			r.warn(e.Key, "unknown event %s: its hooks never run%s", name, hint)
			continue
		case known.missing != "":
			r.warn(e.Key, "%s never happens here, so its hooks never run: %s", name, known.missing)
		}
		for _, group := range e.Value.Items() {
			out = append(out, r.group(name, group, from)...)
		}
	}
	return out
}

// narrow reads a list that limits http handlers. All files' lists count together.
func (r *reader) narrow(n yamlfile.Node, to **[]string) {
	if n.Kind() == yamlfile.AbsentNode {
		return
	}
	if *to == nil {
		*to = &[]string{}
	}
	for _, item := range n.Items() {
		if text, ok := item.Text(); ok {
			**to = append(**to, text)
		}
	}
}

// sourceOf returns where a file's handlers come from. A file hooks/hooks.json belongs to the plugin in the folder above. The
// user's own settings are below the home folder's .claude.
func (r *reader) sourceOf(path string) source {
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	s := source{file: path, isProject: true}
	if home := homeDir(); home != "" && strings.HasPrefix(full, filepath.Join(home, ".claude")+string(filepath.Separator)) {
		s.isProject = false
	}
	if filepath.Base(full) == "hooks.json" && filepath.Base(filepath.Dir(full)) == "hooks" {
		s.plugin = filepath.Dir(filepath.Dir(full))
		name := filepath.Base(s.plugin)
		var about struct {
			Name string `json:"name"`
		}
		if text, err := os.ReadFile(filepath.Join(s.plugin, ".claude-plugin", "plugin.json")); err == nil && json.Unmarshal(text, &about) == nil {
			name = cmp.Or(filepath.Base(about.Name), name)
		}
		if dir, err := os.UserConfigDir(); err == nil {
			s.data = filepath.Join(dir, "grapnel", "claude-plugins", name)
		}
	}
	return s
}

func (r *reader) group(event string, n yamlfile.Node, from source) (out []*handler) {
	if n.Kind() != yamlfile.MappingNode {
		n.Wrong("expected a group with matcher and hooks, got %s", n)
		return nil
	}
	about := events[event]
	var m matcher
	if at := n.Find("matcher"); at.Kind() != yamlfile.AbsentNode {
		text, _ := at.Text()
		var err error
		switch {
		case about.field == "" && text != "" && text != "*":
			r.warn(at, "%s has no matchers: the matcher %q is ignored", event, text)
		case about.field != "":
			if m, err = newMatcher(event, text); err != nil {
				at.Wrong("%w", err)
			}
			r.lintMatcher(event, at, m)
		}
	}
	for _, e := range n.Entries() {
		switch key := e.Key.Raw(); key {
		case "matcher", "hooks":
		case "onFailure", "timeout", "if", "async", "command", "type":
			r.warn(e.Key, "%s has no effect on a group: it belongs to an entry of hooks", key)
		default:
			r.unknownKey(e.Key, []string{"matcher", "hooks"})
		}
	}
	list := n.Find("hooks")
	if list.Kind() == yamlfile.AbsentNode {
		n.Wrong("a group without hooks: it runs nothing")
	}
	for _, item := range list.Items() {
		if h := r.handler(event, item, from); h != nil {
			h.matcher = m
			out = append(out, h)
		}
	}
	return out
}

func (r *reader) unknownKey(key yamlfile.Node, known []string) {
	hint := ""
	if meant, ok := near.Name(key.Raw(), known); ok {
		hint = fmt.Sprintf(": did you mean %s?", meant)
	}
	r.warn(key, "unknown key %s is ignored%s", key.Raw(), hint)
}

// keysOf are the keys of handlers, by type.
var keysOf = map[string][]string{
	kindCommand: {"command", "args", "async", "asyncRewake", "shell", "onFailure"},
	kindHTTP:    {"url", "headers", "allowedEnvVars", "onFailure"},
	kindTool:    {"server", "tool", "input"},
	kindPrompt:  {"prompt", "model", "continueOnBlock"},
	kindAgent:   {"prompt", "model", "continueOnBlock"},
}

var commonKeys = []string{"type", "if", "timeout", "statusMessage", "once"}

func (r *reader) handler(event string, n yamlfile.Node, from source) *handler {
	if n.Kind() != yamlfile.MappingNode {
		n.Wrong("expected a handler with type, got %s", n)
		return nil
	}
	h := &handler{source: from, event: event, place: n.Place()}
	h.kind = r.text(n, "type")
	keys, known := keysOf[h.kind]
	if !known {
		r.wrong(n, "type is %q: known are %s", h.kind, yamlfile.OneOf(slices.Sorted(maps.Keys(keysOf))))
		return nil
	}
	for _, e := range n.Entries() {
		if key := e.Key.Raw(); !slices.Contains(keys, key) && !slices.Contains(commonKeys, key) {
			r.unknownKey(e.Key, append(slices.Clone(keys), commonKeys...))
		}
	}
	if r.readCommon(h, n); !r.readKind(h, n) {
		return nil
	}
	r.lintHandler(h, n)
	h.key = h.identity()
	return h
}

// readCommon reads the keys that all handlers have.
func (r *reader) readCommon(h *handler, n yamlfile.Node) {
	about := events[h.event]
	if at := n.Find("timeout"); at.Kind() != yamlfile.AbsentNode {
		seconds, err := strconv.ParseFloat(at.Raw(), 64)
		if at.Kind() != yamlfile.NumberNode || err != nil || seconds <= 0 {
			at.Wrong("timeout: expected seconds above zero, got %s", at)
		}
		h.timeout = time.Duration(seconds * float64(time.Second))
		if seconds >= 5000 {
			r.warn(at, "timeout is %v: it is in seconds, not milliseconds", h.timeout)
		}
	}
	if at := n.Find("if"); at.Kind() != yamlfile.AbsentNode {
		text, _ := at.Text()
		var err error
		if h.only, err = newCondition(text); err != nil {
			at.Wrong("%w", err)
		}
		if !about.isTool {
			h.only.isNever = true
			r.warn(at, "if is for tool events: at %s the hook never runs", h.event)
		}
	}
	if at := n.Find("once"); at.Kind() != yamlfile.AbsentNode {
		r.warn(at, "once has an effect only in skills: the hook runs each time")
	}
	if at := n.Find("onFailure"); at.Kind() != yamlfile.AbsentNode {
		switch h.onFailure = r.text(n, "onFailure"); {
		case h.onFailure != "block" && h.onFailure != "continue":
			at.Wrong("onFailure is %q: it must be block or continue", h.onFailure)
		case h.onFailure == "block" && about.ignoresFailure:
			r.warn(at, "onFailure has no effect at %s", h.event)
		}
	}
}

// readKind reads the keys of the handler's type, and reports whether the handler can run.
func (r *reader) readKind(h *handler, n yamlfile.Node) bool {
	switch h.kind {
	case kindCommand:
		h.command, h.shell = r.requireText(n, "command"), r.text(n, "shell")
		if args := n.Find("args"); args.Kind() != yamlfile.AbsentNode {
			h.args = []string{}
			for _, item := range args.Items() {
				text, _ := item.Text()
				h.args = append(h.args, text)
			}
		}
		h.isAsync, h.wakes = r.flag(n, "async"), r.flag(n, "asyncRewake")
		h.isAsync = h.isAsync || h.wakes
		if h.shell != "" && h.shell != "bash" && h.shell != "powershell" {
			n.Find("shell").Wrong("shell is %q: it must be bash or powershell", h.shell)
		}
		return h.command != ""
	case kindHTTP:
		h.url = r.requireText(n, "url")
		h.headers = map[string]string{}
		for _, e := range n.Find("headers").Entries() {
			h.headers[e.Key.Raw()], _ = e.Value.Text()
		}
		for _, item := range n.Find("allowedEnvVars").Items() {
			text, _ := item.Text()
			h.allowed = append(h.allowed, text)
		}
		return h.url != ""
	case kindTool:
		h.server, h.tool = r.requireText(n, "server"), r.requireText(n, "tool")
		h.input = json.RawMessage("{}")
		if at := n.Find("input"); at.Kind() != yamlfile.AbsentNode {
			text, err := json.Marshal(at.Value())
			if err != nil || at.Kind() != yamlfile.MappingNode {
				at.Wrong("input: expected an object, got %s", at)
			}
			h.input = text
		}
		return h.server != "" && h.tool != ""
	case kindPrompt:
		h.prompt, h.model, h.mayContinue = r.requireText(n, "prompt"), r.text(n, "model"), r.flag(n, "continueOnBlock")
		return h.prompt != ""
	}
	r.wrong(n, "handlers of type agent are not supported: use type prompt, or a rule of type agent in a policy")
	return false
}

func (*reader) text(n yamlfile.Node, key string) string {
	at := n.Find(key)
	if at.Kind() == yamlfile.AbsentNode {
		return ""
	}
	text, _ := at.Text()
	return text
}

func (r *reader) requireText(n yamlfile.Node, key string) string {
	text := r.text(n, key)
	if text == "" {
		r.wrong(n, "missing %s", key)
	}
	return text
}

func (r *reader) flag(n yamlfile.Node, key string) bool {
	at := n.Find(key)
	if at.Kind() != yamlfile.AbsentNode && at.Kind() != yamlfile.BoolNode {
		at.Wrong("%s: expected true or false, got %s", key, at)
	}
	return at.Kind() == yamlfile.BoolNode && at.Raw() == "true"
}

// identity returns equal texts for equal handlers. A plugin's handler is different from a copy in settings.
func (h *handler) identity() string {
	text, _ := json.Marshal([]any{ //nolint:errchkjson // texts, lists and maps of texts
		h.plugin, h.kind, h.command, h.args, h.args != nil, h.shell, h.url, h.headers, h.server, h.tool, h.input, h.prompt, h.model,
		h.only.tool, h.only.content,
	})
	return string(text)
}

// err returns the mistakes in all files.
func (r *reader) err() error { return errors.Join(yamlfile.Join(r.files...)) }

func homeDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}
