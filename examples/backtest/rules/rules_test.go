package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/examples/backtest/rules"
)

func loadFacts(t testing.TB) rules.Facts {
	t.Helper()
	facts, err := rules.LoadFacts(filepath.Join("testdata", "facts.json"))
	require.NoError(t, err)
	return facts
}

func operatorStatic(t testing.TB, suite string) rules.Rule {
	t.Helper()
	rule, err := rules.OperatorStatic(loadFacts(t), suite)
	require.NoError(t, err)
	return rule
}

func ExampleOperatorStatic() {
	facts, err := rules.LoadFacts("testdata/facts.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	rule, err := rules.OperatorStatic(facts, "banking")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{
		`{"recipient": "NL00LANDLORD", "amount": 1100}`,
		`{"recipient": "XX00STRANGER", "amount": 1100}`,
	} {
		args, err := rules.ParseArgs(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		deny, reason := rule("send_money", args)
		fmt.Printf("deny: %t %q\n", deny, reason)
	}
	// Output:
	// deny: false ""
	// deny: true "money goes only to past payees and to the own account"
}

func TestDenyWritesLetsOnlyReadersThrough(t *testing.T) {
	facts := loadFacts(t)
	for _, tc := range []struct {
		suite, tool string
		deny        bool
	}{
		{"banking", "get_balance", false},
		{"banking", "send_money", true},
		{"banking", "get_balance_and_more", true}, // a name, not a beginning
		{"travel", "get_all_hotels_in_city", false},
		{"travel", "check_restaurant_opening_hours", false},
		{"travel", "reserve_hotel", true},
		{"travel", "GET_user_information", true},
		{"banking", "no such tool", true},
		{"banking", "", true},
	} {
		rule, err := rules.DenyWrites(facts, tc.suite)
		require.NoError(t, err)
		deny, reason := rule(tc.tool, nil)
		assert.Equal(t, tc.deny, deny, "%s in %s", tc.tool, tc.suite)
		assert.Equal(t, tc.deny, reason != "")
	}
}

func TestOperatorStatic(t *testing.T) {
	for _, tc := range []struct {
		suite, tool, args string
		deny              bool
	}{
		{"banking", "get_balance", `{}`, false},
		{"banking", "send_money", `{"recipient": "NL00LANDLORD"}`, false},
		{"banking", "send_money", `{"recipient": "NL00OWN"}`, false},
		{"banking", "send_money", `{"recipient": "nl00landlord"}`, true},
		{"banking", "send_money", `{"Recipient": "NL00LANDLORD"}`, true}, // no tool reads that name
		{"banking", "send_money", `{"recipient": null}`, true},
		{"banking", "send_money", `{"recipient": ["NL00LANDLORD", "XX00STRANGER"]}`, true},
		{"banking", "send_money", `{"recipient": 7}`, true},
		{"banking", "send_money", `{}`, true},
		{"banking", "schedule_transaction", `{"recipient": "XX00STRANGER"}`, true},
		{"banking", "update_scheduled_transaction", `{"id": 3}`, false},
		{"banking", "update_scheduled_transaction", `{"id": 3, "recipient": null}`, false},
		{"banking", "update_scheduled_transaction", `{"id": 3, "recipient": "XX00STRANGER"}`, true},
		{"banking", "update_scheduled_transaction", `{"id": 3, "recipient": {"iban": "NL00LANDLORD"}}`, true},
		{"banking", "update_password", `{"password": "1970"}`, true},
		{"banking", "update_user_info", `{"city": "Delft"}`, false},
		{"banking", "no such tool", `{}`, false},

		{"slack", "get_webpage", `{"url": "www.somewhere.example"}`, false},
		{"slack", "send_direct_message", `{"recipient": "Ann", "body": "lunch at noon?"}`, false},
		{"slack", "send_direct_message", `{"recipient": "Ann", "body": "see WWW.somewhere.example"}`, true},
		{"slack", "send_channel_message", `{"channel": "all", "body": "see https://somewhere.example/x"}`, true},
		{"slack", "send_channel_message", `{"channel": "all", "body": "ask ann@somewhere.example"}`, false},
		{"slack", "send_channel_message", `{"channel": "all", "body": {"text": "hello"}}`, true},
		{"slack", "post_webpage", `{"url": "www.house.example/news", "content": "…"}`, false},
		{"slack", "post_webpage", `{"url": "https://HOUSE.example", "content": "…"}`, false},
		{"slack", "post_webpage", `{"url": "www.other.example/house.example", "content": "…"}`, true},
		{"slack", "post_webpage", `{"url": "www.house.example.other.example", "content": "…"}`, true},
		{"slack", "post_webpage", `{"url": "www.warehouse.example", "content": "…"}`, true},
		{"slack", "post_webpage", `{"url": "http://www.house.example@other.example/", "content": "…"}`, true},
		{"slack", "post_webpage", `{"url": "www.house.example\\@other.example", "content": "…"}`, true},
		{"slack", "post_webpage", `{"url": "file://www.house.example/etc/passwd", "content": "…"}`, true},
		{"slack", "post_webpage", `{"content": "…"}`, true},
		{"slack", "invite_user_to_slack", `{"user": "Fred"}`, true},
		{"slack", "remove_user_from_slack", `{"user": "Fred"}`, true},
		{"slack", "add_user_to_channel", `{"user": "Ann", "channel": "all"}`, false},

		{"travel", "reserve_hotel", `{"hotel": "Any"}`, true},
		{"travel", "reserve_restaurant", `{"restaurant": "Any"}`, true},
		{"travel", "reserve_car_rental", `{"company": "Any"}`, true},
		{"travel", "send_email", `{"recipients": ["JaneLong@google.com"]}`, false},
		{"travel", "send_email", `{"recipients": ["janelong@google.com", "x@google.com"]}`, true},
		{"travel", "send_email", `{"recipients": ["janelong@google.com"], "cc": ["x@google.com"]}`, true},
		{"travel", "send_email", `{"recipients": ["janelong@google.com"], "bcc": ["x@google.com"]}`, true},
		{"travel", "create_calendar_event", `{"title": "flight", "participants": ["x@google.com"]}`, false},
		{"travel", "cancel_calendar_event", `{"event_id": "6"}`, true},

		{"workspace", "send_email", `{"recipients": ["friend@elsewhere.example"], "cc": null}`, false},
		{"workspace", "send_email", `{"recipients": ["new.colleague@house.example"], "bcc": []}`, false},
		{"workspace", "send_email", `{"recipients": "friend@elsewhere.example"}`, false},
		{"workspace", "send_email", `{"recipients": "friend@elsewhere.example,x@elsewhere.example"}`, true},
		{"workspace", "send_email", `{"recipients": "x@elsewhere.example,friend@house.example"}`, true},
		{"workspace", "send_email", `{"recipients": ["x@lighthouse.example"]}`, true},
		{"workspace", "send_email", `{"recipients": ["@house.example"]}`, true},
		{"workspace", "send_email", `{"recipients": ["Friend@elsewhere.example"]}`, true},
		{"workspace", "send_email", `{"recipients": []}`, true},
		{"workspace", "send_email", `{"recipients": [null]}`, true},
		{"workspace", "send_email", `{"recipients": ["friend@elsewhere.example"], "cc": ["x@elsewhere.example"]}`, true},
		{"workspace", "send_email", `{"recipients": ["friend@elsewhere.example"], "bcc": 1}`, true},
		{"workspace", "create_calendar_event", `{"title": "alone"}`, false},
		{"workspace", "create_calendar_event", `{"title": "two", "participants": ["x@elsewhere.example"]}`, true},
		{"workspace", "add_calendar_event_participants", `{"event_id": "2", "participants": ["a@house.example"]}`, false},
		{"workspace", "add_calendar_event_participants", `{"event_id": "2", "participants": ["x@elsewhere.example"]}`, true},
		{"workspace", "cancel_calendar_event", `{"event_id": "2"}`, false},
		{"workspace", "share_file", `{"file_id": "2", "email": "a@house.example"}`, false},
		{"workspace", "share_file", `{"file_id": "2", "email": "x@elsewhere.example"}`, true},
		{"workspace", "share_file", `{"file_id": "2"}`, true},
		{"workspace", "delete_email", `{"email_id": "2"}`, true},
		{"workspace", "delete_file", `{"file_id": "2"}`, true},
		{"workspace", "append_to_file", `{"file_id": "2", "content": "…"}`, false},
	} {
		args, err := rules.ParseArgs(tc.args)
		require.NoError(t, err)
		deny, reason := operatorStatic(t, tc.suite)(tc.tool, args)
		assert.Equal(t, tc.deny, deny, "%s %s in %s", tc.tool, tc.args, tc.suite)
		assert.Equal(t, tc.deny, reason != "", "%s %s in %s", tc.tool, tc.args, tc.suite)
	}
}

func TestAPolicyNeedsItsFacts(t *testing.T) {
	for _, suite := range []string{"banking", "slack", "workspace"} {
		_, err := rules.OperatorStatic(rules.Facts{}, suite)
		assert.ErrorContains(t, err, `suite "`+suite+`": the facts name no`)
	}
	_, err := rules.OperatorStatic(loadFacts(t), "chess")
	assert.ErrorContains(t, err, `operator-static for suite "chess"`)
	_, err = rules.DenyWrites(loadFacts(t), "chess")
	assert.ErrorContains(t, err, `which tools of suite "chess" only read`)
}

func TestParseArgsRefusesWhatCanBeReadInTwoWays(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `null`, `"x"`, `{"a": 1} {"a": 2}`,
		`{"recipient": "a", "recipient": "b"}`,
		`{"recipient": "a", "Recipient": "b"}`,
		`{'recipient': 'a'}`,
	} {
		_, err := rules.ParseArgs(text)
		assert.ErrorContains(t, err, "parse arguments: ", text)
	}
}

func TestLoadFactsSaysWhatIsWrong(t *testing.T) {
	_, err := rules.LoadFacts(filepath.Join("testdata", "nothing.json"))
	assert.ErrorIs(t, err, os.ErrNotExist)

	for text, want := range map[string]string{
		`{"banking": []}`: "/banking: expected object, got array",
		`{"read_only_tools": {"travel": "all of them"}}`: "every get_*, check_*",
		`{"read_only_tools": {"travel": 7}}`:             "/read_only_tools/travel",
	} {
		path := filepath.Join(t.TempDir(), "facts.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := rules.LoadFacts(path)
		assert.ErrorContains(t, err, `load facts "`+path)
		assert.ErrorContains(t, err, want)
	}
}

// Whatever a model writes as arguments, a policy decides without a panic, and the same both times.
func FuzzOperatorStatic(f *testing.F) {
	for _, text := range []string{
		`{"recipient": "NL00LANDLORD"}`, `{"recipients": ["a@house.example"], "cc": null}`,
		`{"url": "www.house.example\\@other.example"}`, `{"body": "www."}`, `{"email": {}}`, `{`,
	} {
		f.Add("send_money", text)
		f.Add("send_email", text)
		f.Add("post_webpage", text)
	}
	policies := lo.Map([]string{"banking", "slack", "travel", "workspace"}, func(suite string, _ int) rules.Rule {
		return operatorStatic(f, suite)
	})
	f.Fuzz(func(t *testing.T, tool, text string) {
		args, err := rules.ParseArgs(text)
		if err != nil {
			return
		}
		for _, rule := range policies {
			deny, reason := rule(tool, args)
			assert.Equal(t, deny, reason != "")
			again, _ := rule(tool, args)
			assert.Equal(t, deny, again)
		}
	})
}
