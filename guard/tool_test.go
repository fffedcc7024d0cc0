package guard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
)

type payment struct {
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

type receipt struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// typedHooks deny payments to Mallory, mock payments to Mock, correct Al, and hide a secret.
var typedHooks = []hooks.Hook{
	hooks.On(hooks.AtPreToolUse, "limits", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		switch to, _ := c.Call().Text("to"); to {
		case "Mallory":
			return c.Deny("Mallory is no friend")
		case "Al":
			return c.Rewrite(map[string]any{"to": "Alice", "amount": 7})
		case "Mock":
			return c.Mock(`{"number":3,"text":"mocked"}`)
		}
		return c.Pass()
	}),
	hooks.AlwaysFilter("secrets", func(text string) string { return strings.ReplaceAll(text, "sk-<1>", "[secret]") }),
}

// results calls tool for each payee, and returns the values, errors and what ran.
func results[T any](t *testing.T, result T) (values map[string]T, errs map[string]string, ran []payment) {
	t.Helper()
	ctx := guard.WithSession(t.Context(), open(t, guard.Config{Hooks: typedHooks}))
	tool := guard.Tool("pay", func(_ context.Context, p payment) (T, error) {
		ran = append(ran, p)
		return result, nil
	})
	values, errs = map[string]T{}, map[string]string{}
	for _, to := range []string{"Bob", "Mallory", "Al", "Mock"} {
		v, err := tool(ctx, payment{To: to, Amount: 5})
		if err != nil {
			errs[to] = err.Error()
			continue
		}
		values[to] = v
	}
	return values, errs, ran
}

const denial = `tool "pay": denied by limits: Mallory is no friend`

func TestToolOfTypedFunc(t *testing.T) {
	t.Parallel()
	want := []payment{{"Bob", 5}, {"Alice", 7}}
	texts, errs, ran := results(t, "paid with sk-<1>")
	assert.Empty(t, errs)
	assert.Equal(t, want, ran)
	assert.Equal(t, map[string]string{
		"Bob": "paid with [secret]", "Mallory": denial, "Mock": `{"number":3,"text":"mocked"}`,
		"Al": "ran with changed arguments: {\"amount\":7,\"to\":\"Alice\"}\npaid with [secret]",
	}, texts)

	values, errs, ran := results(t, receipt{1, "with sk-<1>"})
	assert.Equal(t, map[string]string{"Mallory": denial}, errs)
	assert.Equal(t, want, ran)
	assert.Equal(t, map[string]receipt{"Bob": {1, "with [secret]"}, "Al": {1, "with [secret]"}, "Mock": {3, "mocked"}}, values)

	anything, errs, ran := results[any](t, receipt{1, "without"})
	assert.Empty(t, errs)
	assert.Equal(t, want, ran)
	assert.Equal(t, map[string]any{
		"Bob": receipt{1, "without"}, "Mallory": denial, "Al": map[string]any{"number": 1.0, "text": "without"},
		"Mock": map[string]any{"number": 3.0, "text": "mocked"},
	}, anything)
}

func TestToolRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	s := open(t, guard.Config{})
	never := func(context.Context, chan int) (string, error) { panic("ran") }
	_, err := guard.Tool("pay", never)(guard.WithSession(t.Context(), s), nil)
	require.ErrorContains(t, err, `tool "pay": not executed: its arguments: json: unsupported type`)
	list := guard.Tool("pay", func(context.Context, []int) (string, error) { panic("ran") })
	got, err := list(guard.WithSession(t.Context(), s), []int{1})
	require.NoError(t, err)
	assert.Contains(t, got, "not executed: reading arguments")

	none := guard.Tool("pay", func(_ context.Context, in map[string]any) (string, error) { return fmt.Sprint(in), nil })
	got, err = none(guard.WithSession(t.Context(), s), nil)
	require.NoError(t, err)
	assert.Equal(t, "map[]", got)
}

func TestToolWithAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, guard.Config{Hooks: []hooks.Hook{askAll}, Approver: agent.ParkApprover})
	var ran []string
	tool := guard.Tool("pay", func(_ context.Context, p payment) (string, error) {
		ran = append(ran, p.To)
		return "paid", nil
	})
	ctx := guard.WithSession(t.Context(), s)
	ask := func(ctx context.Context, to string) *guard.AskError {
		_, err := tool(ctx, payment{To: to})
		var ask *guard.AskError
		require.ErrorAs(t, err, &ask)
		return ask
	}
	bob, ann := ask(ctx, "Bob"), ask(ctx, "Ann")
	approve := agent.Approval{Verdict: agent.Approve, By: "eve"}
	ctx = guard.WithAnswers(ctx, bob.Token, approve)
	ctx = guard.WithAnswers(ctx, ann.Token, agent.Approval{Verdict: agent.RejectAndContinue, Reason: "not today", By: "eve"})
	_ = ask(ctx, "Carl")
	assert.Empty(t, ran, "the answers are about other calls")

	got, err := tool(ctx, payment{To: "Bob"})
	require.NoError(t, err)
	assert.Equal(t, "paid", got)
	got, err = tool(ctx, payment{To: "Ann"})
	require.NoError(t, err)
	assert.Contains(t, got, "not today")
	_ = ask(ctx, "Bob")
	assert.Equal(t, []string{"Bob"}, ran, "an approval counts once")
}
