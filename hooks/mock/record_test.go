package mock_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/mock"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/files"
)

var update = flag.Bool("update", false, "write the golden files again")

func read(t testing.TB, text string) *mock.Recording {
	t.Helper()
	recording, err := mock.Read("rec.jsonl", strings.NewReader(text))
	require.NoError(t, err)
	return recording
}

var duration = regexp.MustCompile(`"duration_ms":[0-9.]+`)

// What real tools answered over two runs of a session comes back without them, call by call.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600))
	tree, err := files.Open(files.Config{Root: dir})
	require.NoError(t, err)
	defer tree.Close()
	secrets, err := redact.New(redact.Options{Literals: map[string]string{"PIN": "hunter22"}})
	require.NoError(t, err)
	turns := []agenttest.Turn{
		agenttest.Call("read_file", `{"path":"a.txt"}`).Call("read_file", `{"path":"b.txt"}`),
		agenttest.Call("write_file", `{"path": "a.txt", "content": "two hunter22\n"}`),
		agenttest.Call("read_file", `{"path":"a.\u0074xt"}`).Call("read_file", `{"path":7}`),
		agenttest.Say("first"),
		agenttest.Call("read_file", `{"path":"a.txt"}`),
		agenttest.Say("second"),
	}
	session := func(list ...hooks.Hook) []string {
		a, err := builder.New().WithDriver(agenttest.Script(turns...)).WithParallel(2).
			With(capability.UseTools(tree.Tools()...), capability.UseHooks(list...)).Build().Get()
		require.NoError(t, err)
		session := a.Session(agent.NewState())
		session.Run(t.Context(), agent.UserText("go")).MustGet()
		final := session.Run(t.Context(), agent.UserText("again")).MustGet()
		var texts []string
		for _, m := range final.Messages() {
			if m.Role() == agent.RoleTool {
				texts = append(texts, m.Text())
			}
		}
		return texts
	}
	var file bytes.Buffer
	recorder := mock.Record(&file)
	answered := session(recorder.Hook(), secrets.Results())
	require.NoError(t, recorder.Err())
	require.Len(t, answered, 6)
	assert.NotContains(t, strings.Split(file.String(), "\n")[3], "hunter22", "results are clean")

	golden := filepath.Join("testdata", "files.jsonl")
	text := duration.ReplaceAllString(strings.ReplaceAll(file.String(), dir, "DIR"), `"duration_ms":1`)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)

	require.NoError(t, os.Remove(filepath.Join(dir, "a.txt")))
	player := mock.Replay(read(t, file.String()), mock.Options{})
	assert.Equal(t, answered, session(player.Hook()))
	assert.Empty(t, player.UnplayedLines())
	assert.NoFileExists(t, filepath.Join(dir, "a.txt"), "nothing was written")
	assert.Equal(t, answered, session(player.Hook()), "each session starts again")
}

func TestReplay(t *testing.T) {
	var w world
	recording := read(t, `
{"tool":"weather","arguments":{"city":"Oslo"},"occurrence":1,"text":"snow","duration_ms":1500}
{"tool":"weather","arguments":{"city":"Atlantis"},"occurrence":1,"text":"no such city","failed":true}

{"tool":"weather","arguments":{"days":1,"city":"Oslo"},"occurrence":1,"content":[{"kind":"text","text":"a "},{"kind":"text","text":"b"}]}
{"tool":"weather","arguments":{"city":"\u004fslo"},"occurrence":2,"text":""}
{"tool":"weather","arguments":{},"occurrence":1,"text":"never"}`)
	assert.Equal(t, 5, recording.Len())
	synctest.Test(t, func(t *testing.T) {
		player := mock.Replay(recording, mock.Options{Timed: true})
		began := time.Now()
		got := w.play(t, []hooks.Hook{player.Hook()}, weather("Oslo"), weather("Atlantis"), weather("Oslo"), weather("Oslo"), weather("Bonn"),
			agenttest.Call("weather", `{"city":"Oslo","days":1.0}`))
		assert.Equal(t, []string{
			"mocked 0 mock: snow", "mocked! 0 mock: no such city", "mocked 0 mock: ",
			`not_executed! 0 mock: tool "weather": denied by mock: the recording rec.jsonl has only 2 answers of weather to these arguments: {"city":"Oslo"}`,
			`not_executed! 0 mock: tool "weather": denied by mock: the recording rec.jsonl has no answer of weather to these arguments: {"city":"Bonn"}`,
			"mocked 0 mock: a b",
		}, got)
		assert.Equal(t, 1500*time.Millisecond, time.Since(began))
		assert.Equal(t, []string{"rec.jsonl:7: weather {}, occurrence 1"}, player.UnplayedLines())
	})
	player := mock.Replay(recording, mock.Options{Unmatched: mock.Pass})
	assert.Equal(t, []string{"executed 1 : Bonn: report 1"}, w.play(t, []hooks.Hook{player.Hook()}, weather("Bonn")))
}

func TestWrongRecordings(t *testing.T) {
	const good = `{"tool":"a","arguments":{},"occurrence":1,"text":"x"}`
	for text, want := range map[string]string{
		"{":                        `rec.jsonl:1: `,
		"[]":                       `rec.jsonl:1: `,
		good + "\n\n" + "nonsense": `rec.jsonl:3: `,
		good + "\n" + good:         `rec.jsonl:2: occurrence 1 of a with these arguments: expected 2`,
		`{"tool":"a","arguments":{},"occurrence":2,"text":"x"}`:                     `occurrence 2 of a with these arguments: expected 1`,
		`{"tool":"a","arguments":{},"text":"x"}`:                                    `occurrence 0 of a with`,
		`{"arguments":{},"occurrence":1,"text":"x"}`:                                `"tool" is missing`,
		`{"tool":"a","occurrence":1,"text":"x"}`:                                    `"arguments" is missing`,
		`{"tool":"a","arguments":[],"occurrence":1,"text":"x"}`:                     `/arguments: `,
		`{"tool":"a","arguments":{"x":1,"X":1},"occurrence":1,"text":"x"}`:          `/arguments: `,
		`{"tool":"a","arguments":{"x":1,"x":1},"occurrence":1,"text":"x"}`:          `rec.jsonl:1: `,
		`{"tool":"a","arguments":{},"occurrence":1}`:                                `set either "text" or "content"`,
		`{"tool":"a","arguments":{},"occurrence":1,"text":"x","content":[]}`:        `set either "text" or "content"`,
		`{"tool":"a","arguments":{},"occurrence":1,"text":"x","extra":1}`:           `rec.jsonl:1: at /extra: member`,
		`{"tool":"a","arguments":{},"occurrence":1,"text":"x","duration_ms":-1}`:    `"duration_ms" is out of range`,
		`{"tool":"a","arguments":{},"occurrence":1,"content":[{"kind":"x","y":1}]}`: `rec.jsonl:1: at /content/0/y`,
	} {
		_, err := mock.Read("rec.jsonl", strings.NewReader(text))
		require.ErrorContains(t, err, "read recording of tools: ", text)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := mock.Read("rec.jsonl", strings.NewReader("1\n"+good+"\n2\n"))
	assert.ErrorContains(t, err, "rec.jsonl:1: ")
	assert.ErrorContains(t, err, "rec.jsonl:3: ", "all of it is told")
	_, err = mock.Open(filepath.Join(t.TempDir(), "none.jsonl"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	recording, err := mock.Read("empty", strings.NewReader(""))
	require.NoError(t, err)
	assert.Zero(t, recording.Len())
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, errors.New("the disk is full")
	}
	return len(p), nil
}

func TestRecordingThatFails(t *testing.T) {
	var w world
	recorder := mock.Record(&full{room: 1})
	got := w.play(t, []hooks.Hook{recorder.Hook()}, weather("Oslo"), weather("Rome"), weather("Bonn"))
	assert.Len(t, got, 3, "the run goes on")
	assert.EqualError(t, recorder.Err(), `recording tool "weather": the disk is full`)

	var file bytes.Buffer
	recorder = mock.Record(&file)
	for range 2 {
		w.play(t, []hooks.Hook{recorder.Hook()}, weather("Oslo"))
	}
	assert.ErrorContains(t, recorder.Err(), "use one recorder per session")
	assert.Equal(t, 1, read(t, file.String()).Len())
}

func TestWhatIsNotRecorded(t *testing.T) {
	var w world
	var file bytes.Buffer
	recorder := mock.Record(&file)
	table := table(t, mock.Options{Unmatched: mock.Pass}, mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "snow"})
	never := hooks.On(hooks.AtPreToolUse, "never", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") },
		hooks.ArgumentEquals("city", "Rome"))
	got := w.play(t, []hooks.Hook{table.Hook(), recorder.Hook(), never}, weather("Oslo"), weather("Rome"), agenttest.Call("weather", `{"city":1}`),
		agenttest.Call("weather", `{`), weather("Atlantis"))
	require.Len(t, got, 5)
	assert.Equal(t, `{"tool":"weather","arguments":{"city":"Atlantis"},"occurrence":1,"text":"tool \"weather\": failed: no such city","failed":true,"duration_ms":1}`,
		duration.ReplaceAllString(strings.TrimSpace(file.String()), `"duration_ms":1`))
}

// Parts other than text come back as they were.
func TestContent(t *testing.T) {
	picture := agent.ContentOf(agent.Text("look:"), agent.Image("image/png", []byte{1, 2, 0xff}))
	draw := toolexec.Func("draw", "Draws.", func(context.Context, struct{}) (agent.Content, error) { return picture, nil })
	var file bytes.Buffer
	play := func(hook hooks.Hook) agent.ToolResult {
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("draw", ""), agenttest.Say("done"))).
			With(capability.UseTools(draw), capability.UseHooks(hook)).Build().Get()
		require.NoError(t, err)
		final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		for _, step := range final.Steps() {
			return step.Result(0)
		}
		return agent.ToolResult{}
	}
	play(mock.Record(&file).Hook())
	replayed := play(mock.Replay(read(t, file.String()), mock.Options{}).Hook())
	assert.True(t, replayed.Mocked())
	assert.True(t, replayed.Content.Equal(picture), "%s", file.String())
}

func FuzzRead(f *testing.F) {
	f.Add(`{"tool":"a","arguments":{"x":[1,null]},"occurrence":1,"text":"x","duration_ms":0.5}`)
	f.Add(`{"tool":"a","arguments":{},"occurrence":1,"content":[{"kind":"image","data":"AQI="}],"failed":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		recording, err := mock.Read("rec", strings.NewReader(text))
		if err != nil {
			require.ErrorContains(t, err, "rec:")
			return
		}
		require.Len(t, mock.Replay(recording, mock.Options{}).UnplayedLines(), recording.Len())
	})
}

// In a later run of a session an answer counts as long as no other hook replaced it, as the package comment says.
func TestAnswersThatOthersReplaced(t *testing.T) {
	recording, err := mock.Read("x", strings.NewReader(
		`{"tool":"weather","arguments":{"city":"Oslo"},"occurrence":1,"text":"one"}`+"\n"+`{"tool":"weather","arguments":{"city":"Oslo"},"occurrence":2,"text":"two"}`))
	require.NoError(t, err)
	stamp := hooks.On(hooks.AtPostToolUse, "stamp", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Replace(c.Text() + "!") })
	for _, tc := range []struct {
		list []hooks.Hook
		want []string
	}{
		{nil, []string{"mocked 0 mock: one", "mocked 0 mock: two"}},
		{[]hooks.Hook{stamp}, []string{"mocked 0 stamp: one!", "mocked 0 stamp: one!"}},
	} {
		a := new(world).agent(t, append(tc.list, mock.Replay(recording, mock.Options{}).Hook()), weather("Oslo"))
		first := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		assert.Equal(t, tc.want, answers(a.Run(t.Context(), first, agent.UserText("again")).MustGet()))
	}
}
