package claudehooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/action/local"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Options configure how settings are loaded and run. The zero value is ready to use.
type Options struct {
	// Dir is the project: handlers run in it, and get it as CLAUDE_PROJECT_DIR. Relative paths in tools' arguments are
	// below it. Empty means the working directory.
	Dir string
	// Compat treats failures as Claude Code does: a handler that cannot decide blocks only with onFailure "block".
	// Without it, every such handler blocks unless it has onFailure "continue".
	Compat bool
	// Trusted reports whether a file with the given digest may run. The digest covers the file and the scripts that it
	// names. Trusted is not asked about the user's own settings, in ~/.claude. Nil trusts all files.
	Trusted func(file, digest string) bool
	// Notify receives what handlers tell the user, and their failures. It must be quick and safe for concurrent use.
	// Nil drops notices.
	Notify func(Notice)
	// Read reads settings files. Nil reads from disk.
	Read func(path string) ([]byte, error)
}

// Notice is something that the user should know.
type Notice struct {
	// Event is the event, and Hook the handler's command, URL or tool.
	Event string
	Hook  string
	Text  string
	// Failed reports that the handler could not decide.
	Failed bool
}

func (n Notice) String() string {
	if n.Failed {
		return n.Text
	}
	return fmt.Sprintf("%s hook [%s]: %s", n.Event, n.Hook, n.Text)
}

// UntrustedError is returned for a file that Options.Trusted refuses.
type UntrustedError struct {
	File   string
	Digest string
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("loading hooks from %s: the file and its scripts are not approved (%s): read them, then approve this digest", e.File, e.Digest)
}

// Set holds settings files' hooks. It is a capability, and safe for concurrent use. Create one with Load, and close it
// after its agents.
type Set struct {
	options  Options
	handlers map[string][]*handler
	warnings []Warning
	digests  map[string]string

	urls, headerNames *[]string // nil means no limit

	dir        string          // for transcripts
	ctx        context.Context //nolint:containedctx // of the handlers in the background
	cancel     context.CancelFunc
	background sync.WaitGroup
	hinted     sync.Map

	mu       sync.Mutex
	isClosed bool
	sessions map[string]*session
	roots    map[agent.RunID]string
}

var _ capability.Capability = (*Set)(nil)

// Load reads settings files, in the order in which their handlers' rewrites apply. The error joins the mistakes in all files,
// with lines and columns, or says which file is not trusted.
func Load(files []string, o Options) (*Set, error) {
	s, err := newSet(files, o)
	if err != nil {
		return nil, err
	}
	if o.Trusted != nil {
		for _, file := range files {
			if digest := s.digests[file]; (source{}).isOwn(file) || o.Trusted(file, digest) {
				continue
			}
			return nil, &UntrustedError{file, s.digests[file]}
		}
	}
	if s.dir, err = os.MkdirTemp("", "grapnel-claude-hooks-"); err != nil {
		return nil, fmt.Errorf("creating a folder for transcripts: %w", err)
	}
	return s, nil
}

// isOwn reports whether a file is the user's own.
func (source) isOwn(path string) bool { return !(&reader{}).sourceOf(path).isProject }

// Check reads settings files like Load, and returns warnings about entries and scripts that do nothing or something else than
// they seem to.
func Check(files []string, o Options) ([]Warning, error) {
	s, err := newSet(files, o)
	if err != nil {
		return nil, err
	}
	s.cancel()
	return s.warnings, nil
}

func newSet(files []string, o Options) (*Set, error) {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("finding the project's folder: %w", err)
	}
	if o.Read == nil {
		o.Read = yamlfile.Read
	}
	s := &Set{options: o, handlers: map[string][]*handler{}, digests: map[string]string{}, sessions: map[string]*session{}, roots: map[agent.RunID]string{}}
	r := &reader{set: s}
	var all []*handler
	for _, file := range files {
		text, err := o.Read(file)
		if err != nil {
			return nil, fmt.Errorf("reading hooks: %w", err)
		}
		list := r.read(file, text)
		if err := s.hashScripts(list); err != nil {
			return nil, err
		}
		s.digests[file] = digest(text, list)
		all = append(all, list...)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	s.warnings = r.warnings
	if !r.isOff {
		for _, h := range all {
			if events[h.event].missing == "" && !h.only.isNever {
				s.handlers[h.event] = append(s.handlers[h.event], h)
			}
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Warnings returns what has no effect in the files: events that never happen here, matchers that match nothing, keys in the
// wrong place.
func (s *Set) Warnings() []Warning { return slices.Clone(s.warnings) }

// begin reports whether a handler may start, and counts it.
func (s *Set) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return false
	}
	s.background.Add(1)
	return true
}

// Close waits for handlers in the background until ctx is done, then ends them, and removes the transcripts.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	s.isClosed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.background.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.cancel()
	<-done
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// bound is a Set with the parts of one agent.
type bound struct {
	*Set
	driver agent.Driver
	tools  action.ToolCaller
}

// Install adds the hooks to an agent. Handlers of type prompt ask the agent's model, and handlers of type mcp_tool call its
// tools. Add the Set after the tools.
func (s *Set) Install(p capability.Plan) mo.Result[capability.Plan] {
	b := &bound{Set: s, driver: p.Driver()}
	var tools []toolexec.Tool
	for _, tool := range p.Tools() {
		tools = append(tools, tool)
	}
	callable, err := local.NewTools(tools...)
	if err != nil {
		return mo.Err[capability.Plan](fmt.Errorf("installing Claude Code's hooks: %w", err))
	}
	b.tools = callable
	if err := b.checkParts(callable.Names()); err != nil {
		return mo.Err[capability.Plan](err)
	}
	if len(s.handlers[sessionStart]) > 0 {
		p = p.WrapExecutor(capability.Inside, "claude-hooks-environment", b.withVariables)
	}
	return mo.Ok(p.WithHooks(b.hooks()...))
}

// checkParts returns an error for handlers that need parts that the agent does not have.
func (b *bound) checkParts(tools []string) error {
	var wrong []error
	for _, list := range b.handlers {
		for _, h := range list {
			var err error
			switch name := h.label(); {
			case h.kind == kindTool && !slices.Contains(tools, name):
				err = fmt.Errorf("the agent has no tool %q: connect the MCP server %q", name, h.server)
			case h.kind == kindPrompt && b.driver == nil:
				err = errors.New("the agent has no model to ask: set the driver first")
			default:
				continue
			}
			if !b.options.Compat {
				wrong = append(wrong, h.place.Error(err))
			} else if b.options.Notify != nil {
				b.options.Notify(Notice{Event: h.event, Hook: h.label(), Text: err.Error()})
			}
		}
	}
	return errors.Join(wrong...)
}

// String returns how many handlers there are, by event.
func (s *Set) String() string {
	var parts []string
	for name, list := range s.handlers {
		parts = append(parts, fmt.Sprintf("%s %d", name, len(list)))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "no hooks"
	}
	return strings.Join(parts, ", ")
}
