package replay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
)

// A policy is tried on what models did: every recording is played through an agent that has it.
func ExampleSession_Play() {
	noLending := hooks.On(hooks.AtPreToolUse, "no-lending", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("books are lent by people")
	}, hooks.ToolNamed("lend_book"))

	tools, err := replay.LoadTools("testdata/library-tools.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := builder.New().
		WithDriver(replay.Driver{}).
		With(
			capability.UseTools(replay.Tools(tools...)...),
			capability.UseCriteria(replay.GoOn),
			capability.UseHooks(noLending),
		).
		Build().Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	records, err := replay.Load("testdata/sample.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, record := range records {
		session, err := replay.NewSession(record)
		if err != nil {
			fmt.Println(err)
			return
		}
		played, err := session.Play(context.Background(), a)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, d := range played.Departures {
			if d.Kind == replay.CallDenied {
				fmt.Printf("%s (%s): %s\n", record.ID, record.Kind, d)
			}
		}
	}
	// Output:
	// sample/two-turns (clean): run 2, turn 1, call call_1 of lend_book: denied: tool "lend_book": denied by no-lending: books are lent by people
	// sample/injected (attack): run 1, turn 2, call c1 of lend_book: denied: tool "lend_book": denied by no-lending: books are lent by people
}

func ExampleOpen() {
	recording, err := replay.Open("testdata/sample.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer recording.Close()

	for run, err := range recording.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, call := range run.Calls() {
			fmt.Printf("%s %s %s %q\n", run.ID, call.ID, call.Function.Name, call.Function.Arguments)
		}
	}
	// Output:
	// sample/clean c0 find_book "{\"title\": \"Emma\"}"
	// sample/malformed-arguments c0 find_book "{'title': 'Emma'}"
	// sample/malformed-arguments c1 find_book ""
	// sample/malformed-arguments c2 find_book "{ \"title\":\"Emma\",\t\"most\": 1.0 }\n"
	// sample/two-turns call_1 find_book "{\"title\": \"Emma\"}"
	// sample/two-turns call_1 lend_book "{\"copy\": \"17\", \"reader\": \"Zoë\"}"
	// sample/two-turns call_2 opening_hours "{}"
	// sample/injected c0 find_book "{\"title\": \"Emma\"}"
	// sample/injected c1 lend_book "{\"copy\": \"3\", \"reader\": \"Mallory\"}"
	// sample/cut-off c0 find_book "{\"title\": \"Emma\"}"
	// sample/cut-off c1 find_book "{\"title\": \"Emma\"}"
	// sample/greeting c0 no_such_tool "{}"
}

// A loop that goes on after a bad line collects what is wrong and reads the rest.
func ExampleReader_Records() {
	recording := replay.NewReader(strings.NewReader(`
{"id": "first", "messages": []}
{"id": "second", "messages": [}
{"id": "third", "messages": [{"role": "user", "content": 7}]}
{"id": "fourth", "messages": []}
`))
	for run, err := range recording.Records() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(run.ID)
	}
	// Output:
	// first
	// read recording "recording": line 3: at /messages/0: not valid JSON at byte 30: invalid character '}' at start of value
	// read recording "recording": line 4: at /messages/0/content: expected a string, null or a list of parts, got 7
	// fourth
}

func ExampleLoadTools() {
	tools, err := replay.LoadTools("testdata/library-tools.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range tools {
		fmt.Printf("%s: %s\n", tool.Name, tool.Description)
	}
	// Output:
	// find_book: Say which copies of a book the library has.
	// lend_book: Lend a copy to a reader.
	// opening_hours: Say when the library is open.
}
