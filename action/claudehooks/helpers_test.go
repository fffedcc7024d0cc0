package claudehooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an agent with hooks in a folder.
type world struct {
	t       *testing.T
	dir     string
	set     *claudehooks.Set
	mu      sync.Mutex
	ran     []string // the commands that ran
	notices []claudehooks.Notice
	result  string // of commands; "fail" fails
}

// handler returns a command handler as JSON.
func handler(command string, more ...string) string {
	text, _ := json.Marshal(command)
	return fmt.Sprintf(`{"type":"command","command":%s%s}`, text, strings.Join(more, ""))
}

// settings returns settings with handlers for one event.
func settings(event, matcher string, handlers ...string) string {
	return fmt.Sprintf(`{"hooks":{%q:[{"matcher":%q,"hooks":[%s]}]}}`, event, matcher, strings.Join(handlers, ","))
}

func newWorld(t *testing.T, text string, o claudehooks.Options) *world {
	t.Helper()
	if strings.Contains(text, "python3 ") {
		parts.Command(t, "python3", "install Python 3")
	}
	if strings.Contains(text, "node ") {
		parts.Command(t, "node", "install Node.js")
	}
	w := &world{t: t, dir: t.TempDir(), result: "exit code 0\nno output"}
	require.NoError(t, os.CopyFS(w.dir, os.DirFS("testdata/scripts")))
	path := filepath.Join(w.dir, "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	o.Dir = w.dir
	o.Notify = func(n claudehooks.Notice) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notices = append(w.notices, n)
	}
	var err error
	w.set, err = claudehooks.Load([]string{path}, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, w.set.Close(ctx))
	})
	return w
}

func (w *world) bash() toolexec.Tool {
	return toolexec.CallFunc(agent.ToolSpec{
		Name: "bash", Parameters: `{"type":"object","properties":{"command":{"type":"string"},"timeout_seconds":{"type":"integer"}},` +
			`"required":["command"],"additionalProperties":false}`,
	}, func(_ context.Context, _ toolexec.Call, in struct {
		Command        string `json:"command"`
		TimeoutSeconds int    `json:"timeout_seconds"`
	},
	) (toolexec.Output, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran = append(w.ran, in.Command)
		return toolexec.Output{Content: agent.TextContent(w.result), Failed: w.result == "fail"}, nil
	})
}

// agent builds an agent whose model gives the replies.
func (w *world) agent(more []capability.Capability, replies ...agenttest.Turn) (*agent.Agent, *agenttest.Driver) {
	w.t.Helper()
	d := agenttest.Script(replies...)
	a, err := builder.New().WithName("tester").WithDriver(d).With(capability.UseTools(w.bash())).With(more...).With(w.set).Build().Get()
	require.NoError(w.t, err)
	return a, d
}

// run lets the model call bash once.
func (w *world) run(command string) agent.State {
	w.t.Helper()
	turns := []agenttest.Turn{agenttest.Call("bash", fmt.Sprintf(`{"command":%q}`, command))}
	for range 12 { // Stop may continue eight times
		turns = append(turns, agenttest.Say("done"))
	}
	a, _ := w.agent(nil, turns...)
	s, _ := a.Run(w.t.Context(), agent.NewState(), agent.UserText("go")).Get()
	return s
}

// text returns all that the model was shown.
func text(s agent.State) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintf(&b, "%s: %s\n", m.Role(), m.Text())
	}
	return b.String()
}

// answer returns the answer to the only call.
func answer(s agent.State) string {
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleTool {
			return m.Text()
		}
	}
	return ""
}

// logged returns what scripts have written to a file.
func (w *world) logged(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(text)
}

func (w *world) noted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, n := range w.notices {
		lines = append(lines, n.String())
	}
	return strings.Join(lines, "\n")
}

// newPlugin is newWorld for a plugin's hooks.
func newPlugin(t *testing.T, text string) *world {
	t.Helper()
	w := newWorld(t, `{"hooks":{}}`, claudehooks.Options{})
	path := filepath.Join(w.dir, "plugin", "hooks", "hooks.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	set, err := claudehooks.Load([]string{path}, claudehooks.Options{Dir: w.dir})
	require.NoError(t, err)
	w.set = set
	t.Cleanup(func() { require.NoError(t, set.Close(context.Background())) })
	return w
}
