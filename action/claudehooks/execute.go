package claudehooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks/judge"
	"github.com/grapnel-go/grapnel/internal/process"
)

// maxOutput limits what is kept of a handler's output.
const maxOutput = 1 << 20

// execution is how a handler ended.
type execution struct {
	stdout, stderr string
	exit           int
	// err is why the handler did not start, or could not be asked.
	err      error
	timedOut bool
}

// firing is one event.
type firing struct {
	event string
	// value is what matchers match, with other names for the same tool.
	values []string
	tool   string
	input  json.RawMessage
	// fields are the members of the input.
	fields  map[string]any
	session *session
	run     agent.Run
	// limit, unless zero, is the time limit of all handlers.
	limit time.Duration
	// driver asks the model for prompt handlers. tools calls tools.
	bound *bound
}

// stdin returns the input as JSON.
func (f *firing) stdin() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f.fields); err != nil { // members are texts, numbers and JSON
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// start runs a handler until it ends. isAsync is closed when a command answers that it goes on in the background.
func (s *Set) start(ctx context.Context, h *handler, f *firing, limit time.Duration, isAsync chan struct{}) execution {
	if err := s.checkScripts(h); err != nil {
		return execution{err: err}
	}
	switch h.kind {
	case kindHTTP:
		return s.post(ctx, h, f, limit)
	case kindTool:
		return f.callTool(ctx, h, limit)
	case kindPrompt:
		return f.ask(ctx, h, limit)
	}
	return s.runCommand(ctx, h, f, limit, isAsync)
}

// expand replaces the variables that Claude Code replaces, as plain text.
func (s *Set) expand(h *handler, text string) string {
	values := []string{"${CLAUDE_PROJECT_DIR}", s.options.Dir}
	if h.plugin != "" {
		values = append(values, "${CLAUDE_PLUGIN_ROOT}", h.plugin, "${CLAUDE_PLUGIN_DATA}", h.data)
	}
	return strings.NewReplacer(values...).Replace(text)
}

func (s *Set) runCommand(ctx context.Context, h *handler, f *firing, limit time.Duration, isAsync chan struct{}) (out execution) {
	argv := []string{"sh", "-c", s.expand(h, h.command)}
	switch {
	case h.args != nil:
		argv = []string{s.expand(h, h.command)}
		for _, arg := range h.args {
			argv = append(argv, s.expand(h, arg))
		}
	case h.shell == "bash":
		argv[0] = "bash"
	case h.shell == "powershell":
		argv = []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", argv[2]}
	}
	path := argv[0]
	if strings.Contains(path, "/") && !filepath.IsAbs(path) {
		path = filepath.Join(s.workDir(), path)
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return execution{err: fmt.Errorf("starting %s: %w", argv[0], err)}
	}
	stdout, stderr := firstLine{Head: process.Head{Max: maxOutput}, isAsync: isAsync}, process.Head{Max: maxOutput}
	r, err := process.Run(ctx, process.Command{
		Path: path, Args: argv, Dir: s.workDir(), Env: s.environ(h, f), Stdin: f.stdin(), Stdout: &stdout, Stderr: &stderr,
		Timeout: limit, Leave: true,
	})
	out = execution{stdout: string(stdout.Kept), stderr: string(stderr.Kept), err: err}
	if err != nil {
		return out
	}
	out.exit = r.ExitCode()
	switch r.Ended {
	case process.TimedOut:
		out.timedOut = true
	case process.Cancelled:
		out.err = context.Canceled
	}
	return out
}

// firstLine keeps output, and closes isAsync when the first line says that the rest happens in the background.
type firstLine struct {
	process.Head
	isAsync chan struct{}
	isRead  bool
}

func (w *firstLine) Write(p []byte) (int, error) {
	n, err := w.Head.Write(p)
	if line, _, whole := bytes.Cut(w.Kept, []byte("\n")); whole && !w.isRead {
		w.isRead = true
		var o struct {
			Async bool `json:"async"`
		}
		if json.Unmarshal(line, &o) == nil && o.Async {
			close(w.isAsync)
		}
	}
	return n, err
}

// workDir returns the folder in which handlers run: the first that exists.
func (s *Set) workDir() string {
	start, _ := os.Getwd()
	for _, dir := range []string{s.options.Dir, start, homeDir()} {
		if info, err := os.Stat(dir); dir != "" && err == nil && info.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

// environ returns a command's environment: this program's, without the settings of OpenTelemetry, and Claude Code's variables.
func (s *Set) environ(h *handler, f *firing) []string {
	values := map[string]string{}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); !strings.HasPrefix(name, "OTEL_") {
			values[name] = value
		}
	}
	values["CLAUDE_PROJECT_DIR"], values["CLAUDECODE"] = s.options.Dir, "1"
	for _, name := range []string{"CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"} {
		delete(values, name)
	}
	if h.plugin != "" {
		values["CLAUDE_PLUGIN_ROOT"], values["CLAUDE_PLUGIN_DATA"] = h.plugin, h.data
		_ = os.MkdirAll(h.data, 0o700) // without it, the script says what is wrong
	}
	if f.event == sessionStart {
		values["CLAUDE_ENV_FILE"] = f.session.envFile()
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}

var variable = regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))`)

// post sends the input to a web service.
func (s *Set) post(ctx context.Context, h *handler, f *firing, limit time.Duration) execution {
	if s.urls != nil && !slices.ContainsFunc(*s.urls, func(pattern string) bool { return matchStars(pattern, h.url) }) {
		return execution{err: errors.New("allowedHttpHookUrls does not allow this URL")}
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(f.stdin()))
	if err != nil {
		return execution{err: err}
	}
	for name, value := range h.headers {
		request.Header.Set(name, variable.ReplaceAllStringFunc(value, func(found string) string {
			name := strings.Trim(found, "${}")
			if !slices.Contains(h.allowed, name) || s.headerNames != nil && !slices.Contains(*s.headerNames, name) {
				return ""
			}
			return os.Getenv(name)
		}))
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err == nil {
		defer response.Body.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(response.Body, maxOutput)); err == nil {
			text := strings.TrimSpace(string(body))
			switch {
			case response.StatusCode/100 != 2:
				return execution{err: fmt.Errorf("%s: %s", response.Status, firstLineOf(text))}
			case text != "" && (!strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}")):
				return execution{err: errors.New("the response is no JSON object")}
			}
			return execution{stdout: text}
		}
	}
	if ctx.Err() != nil && parent.Err() == nil {
		return execution{timedOut: true}
	}
	return execution{err: err}
}

var inputPath = regexp.MustCompile(`\$\{([\w.\-]+)\}`)

// callTool calls a tool of an MCP server. Its text is read like a command's output.
func (f *firing) callTool(ctx context.Context, h *handler, limit time.Duration) execution {
	if f.bound.tools == nil {
		return execution{err: errors.New("the agent has no tools")}
	}
	var about, input any
	if err := errors.Join(json.Unmarshal(f.stdin(), &about), json.Unmarshal(h.input, &input)); err != nil {
		return execution{err: err}
	}
	arguments, err := json.Marshal(substitute(input, about))
	if err != nil {
		return execution{err: err}
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := f.bound.tools.CallTool(ctx, h.server, h.tool, arguments)
	if ctx.Err() != nil && parent.Err() == nil {
		return execution{timedOut: true}
	}
	return execution{stdout: text, err: err}
}

// substitute replaces ${path} in all texts of v by the value at that path of the event.
func substitute(v, about any) any {
	switch v := v.(type) {
	case string:
		return inputPath.ReplaceAllStringFunc(v, func(found string) string {
			at := about
			for step := range strings.SplitSeq(found[2:len(found)-1], ".") {
				members, _ := at.(map[string]any)
				at = members[step]
			}
			if text, ok := at.(string); ok || at == nil {
				return text
			}
			text, _ := json.Marshal(at)
			return string(text)
		})
	case []any:
		for i := range v {
			v[i] = substitute(v[i], about)
		}
	case map[string]any:
		for key := range v {
			v[key] = substitute(v[key], about)
		}
	}
	return v
}

// ask lets the run's model judge the event. Its answer becomes the output that a command would have printed.
func (f *firing) ask(ctx context.Context, h *handler, limit time.Duration) execution {
	if f.bound.driver == nil {
		return execution{err: errors.New("the agent has no model")}
	}
	rule := strings.ReplaceAll(h.prompt, "$ARGUMENTS", "(the request below)")
	j, err := judge.New(judge.Options{Driver: f.bound.driver, Model: modelName(h.model), Rule: rule, MaxBytes: maxOutput})
	if err != nil {
		return execution{err: err}
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	verdict, err := j.Decide(ctx, f.stdin())
	switch {
	case ctx.Err() != nil && parent.Err() == nil:
		return execution{timedOut: true}
	case err != nil:
		return execution{err: err}
	case verdict.Allowed:
		return execution{}
	}
	answer := map[string]any{"decision": "block", "reason": verdict.Reason}
	switch {
	case f.event == permissionRequest:
		answer = map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": f.event, "decision": map[string]string{"behavior": "deny", "message": verdict.Reason},
		}}
	case f.event == preToolUse, f.event == stopEvent, f.event == subagentStop, h.mayContinue:
	default:
		answer["continue"], answer["stopReason"] = false, verdict.Reason
	}
	text, err := json.Marshal(answer)
	return execution{stdout: string(text), err: err}
}

// modelName returns the model for a handler: Claude Code's short names mean the run's own model.
func modelName(name string) string {
	switch name {
	case "haiku", "sonnet", "opus", "inherit":
		return ""
	}
	return name
}

func firstLineOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}
