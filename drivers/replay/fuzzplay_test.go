package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
)

// scripted makes a recording of any bytes: each is a message, its low bits say of what kind.
func scripted(script []byte) *replay.Record {
	ids := []string{"a", "b", "", "a"}
	calls := []replay.FunctionCall{
		{Name: "find_book", Arguments: `{"title": "Emma"}`},
		{Name: "lend_book", Arguments: `{"copy": "17", "reader": "Zoë"}`},
		{Name: "opening_hours", Arguments: ``},
		{Name: "find_book", Arguments: `{'title'}`},
		{Name: "find_book", Arguments: `{"title": 7}`},
		{Name: "", Arguments: `{}`},
		{Name: "no such tool", Arguments: `[]`},
	}
	record := &replay.Record{ID: "scripted"}
	for i, b := range script {
		kind, n := b%8, int(b/8)
		m := replay.Message{Content: replay.Text(fmt.Sprint("message ", i))}
		switch kind {
		case 0:
			m.Role = lo.Ternary(n%2 == 0, replay.RoleSystem, replay.RoleDeveloper)
		case 1, 2:
			m.Role = replay.RoleUser
		case 3:
			m.Role = replay.RoleAssistant
		case 4, 5:
			m.Role = replay.RoleAssistant
			for j := range n%4 + 1 {
				m.ToolCalls = append(m.ToolCalls, replay.ToolCall{ID: ids[(n/4+j)%len(ids)], Function: calls[(n+j)%len(calls)]})
			}
		default:
			m.Role, m.ToolCallID, m.Error = replay.RoleTool, ids[n%len(ids)], n%8 > 5
		}
		record.Messages = append(record.Messages, m)
	}
	return record
}

// bothered has hooks that get in the way of everything.
func bothered(t testing.TB) *agent.Agent {
	t.Helper()
	return player(t, capability.UseGuards{Steps: 20}, capability.UseHooks(
		hooks.On(hooks.AtInputSubmitted, "input", func(_ context.Context, c hooks.InputContext) hooks.Result {
			return lo.Ternary(strings.HasSuffix(c.Text(), "7"), c.Deny("seven"), c.Allow())
		}),
		hooks.On(hooks.AtPreToolUse, "calls", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			switch {
			case c.Tool() == "lend_book":
				return c.Deny("no")
			case c.Tool() == "opening_hours" && c.Index() > 2:
				return c.Stop("too many")
			case c.Tool() == "opening_hours":
				return c.Mock("always", agent.AddContext("it is Monday"))
			case c.Invalid() != nil && c.Index() == 0:
				return c.Rewrite(map[string]string{"title": "Emma"})
			case c.Tool() == "":
				panic("no name")
			}
			return c.Pass()
		}),
		hooks.On(hooks.AtPostInference, "replies", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
			return lo.Ternary(strings.HasSuffix(c.Text(), "5"), c.ReplaceText("five"), c.Allow())
		}),
		hooks.On(hooks.AtStop, "more", func(_ context.Context, c hooks.StopContext) hooks.Result {
			return lo.Ternary(strings.HasSuffix(c.Answer(), "9"), c.Continue("go on"), c.Allow())
		}),
	))
}

// Whatever was recorded and whatever hooks do: a play ends, every call has one answer, and departures are in order.
// Without hooks, what is told is what was recorded, and only calls that cannot run are departures.
func FuzzPlay(f *testing.F) {
	for _, script := range []string{
		"", "\x00\x01\x03", "\x01\x04\x06", "\x01\x03\x04\x06\x03", "\x01\x0c\x06\x0e\x01\x0c\x06\x01\x03\x01",
		"\x03\x01\x03", "\x06\x01\x1c\x1c\x06\x0e\x16\x00\x03\x00\x01\x03\x00", "\x01\x4c\x54\x5c\x64\x6c\x74\x7c\x03",
	} {
		f.Add([]byte(script))
	}
	free, hindered := player(f), bothered(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			return
		}
		record := scripted(script)
		x, err := replay.NewSession(record)
		require.NoError(t, err)
		for _, a := range []*agent.Agent{free, hindered} {
			played, err := x.Play(t.Context(), a)
			require.NoError(t, err)
			require.Equal(t, x.Runs(), played.Runs)
			everyCallHasOneAnswer(t, played.State)
			departuresAreInOrder(t, x, played.Departures)
			if a == free {
				whatWasRecordedWasTold(t, record, played)
			}
		}
	})
}

func everyCallHasOneAnswer(t *testing.T, s agent.State) {
	t.Helper()
	var messages []agent.Message
	for _, m := range s.Messages() {
		messages = append(messages, m)
	}
	answers := 0
	for i, m := range messages {
		for j, c := range m.Calls() {
			require.Less(t, i+1+j, len(messages))
			require.Equal(t, c.ID, messages[i+1+j].CallID())
			require.NotEmpty(t, c.ID)
			answers++
		}
		if m.Role() == agent.RoleTool {
			answers--
		}
	}
	require.Zero(t, answers)
}

func departuresAreInOrder(t *testing.T, x *replay.Session, departures []replay.Departure) {
	t.Helper()
	require.True(t, slices.IsSortedFunc(departures, func(a, b replay.Departure) int {
		if a.Run != b.Run {
			return a.Run - b.Run
		}
		return a.Turn - b.Turn
	}), departures)
	for _, d := range departures {
		require.Less(t, d.Run, x.Runs())
		require.LessOrEqual(t, d.Turn, x.Turns(d.Run))
		require.NotEmpty(t, d.Detail)
	}
}

func whatWasRecordedWasTold(t *testing.T, record *replay.Record, played replay.Played) {
	t.Helper()
	for _, d := range played.Departures {
		require.Equal(t, replay.CallNotRun, d.Kind, d)
	}
	said := lo.Filter(record.Messages, func(m replay.Message, _ int) bool { return m.Role != replay.RoleTool })
	told := 0
	for _, m := range played.State.Messages() {
		if m.Role() == agent.RoleTool {
			continue
		}
		role := lo.Ternary(said[told].Role == replay.RoleDeveloper, replay.RoleSystem, said[told].Role)
		require.Equal(t, string(role), string(m.Role()))
		require.Equal(t, said[told].Content.Text, m.Text())
		told++
	}
	for _, m := range said[told:] { // the run was over before they could be told
		assert.Contains(t, []replay.Role{replay.RoleSystem, replay.RoleDeveloper}, m.Role)
	}
}
