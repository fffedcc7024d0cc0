package replay_test

import (
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

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
