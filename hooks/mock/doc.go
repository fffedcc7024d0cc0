// Package mock answers tool calls instead of the tools: from a table, for evals and tests, or from a recording of earlier
// results.
//
//	table, err := mock.NewTable(mock.Options{},
//		mock.Row{Tool: "weather", Arguments: mock.Arguments{"city": "Oslo"}, Text: "-3 °C, snow"},
//		mock.Row{Tool: "weather", Failure: "the weather service is down", Latency: 2 * time.Second},
//	)
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(table.Hook())).
//		Build().Get()
//	// …
//	for _, row := range table.UnusedRows() {
//		fmt.Println("never used:", row)
//	}
//
// Recording and replaying:
//
//	file, err := os.Create("tools.jsonl")
//	// …
//	recorder := mock.Record(file) // for capability.UseHooks(recorder.Hook())
//	// …
//	recording, err := mock.Open("tools.jsonl")
//	player := mock.Replay(recording, mock.Options{}) // for capability.UseHooks(player.Hook())
//
// # Answers
//
// The agent keeps its tools. The model sees them, and their schemas check the arguments before a mock answers. A call
// with invalid arguments gets the schema error. Mocks run after the other PreToolUse hooks, so that guards still deny
// calls, and a rewritten call is looked up as rewritten. A mock keeps an earlier mock's answer, so that a table can
// precede a recording.
//
// A mocked result has the status mocked and no attempts, can be a failure, and passes through PostToolUse, including
// redaction, like any other result. The first row that matches answers. A call without a match is denied with a
// message, or passed on to the tool: see Options.Unmatched.
//
// # Recordings
//
// A recording is JSON Lines, with one answered call of a session on each line:
//
//	{"tool":"weather","arguments":{"city":"Oslo"},"occurrence":1,"text":"-3 °C, snow","duration_ms":812}
//	{"tool":"weather","arguments":{"city":"Rome"},"occurrence":1,"text":"tool \"weather\": failed: no such city","failed":true,"duration_ms":3}
//
// Calls are matched by tool, by arguments compared as JSON values, and by occurrence. The second time that a session
// makes a call, it gets the second answer. (In later runs of a session, a result that a hook at PostToolUse replaced
// does not count as an occurrence.) The format is read strictly, because people edit it. Unknown members, occurrences
// that do not count up from one, and arguments that are not an object are errors with file and line. Content other than
// text is in "content", as parts. For a failure, only the text is replayed.
//
// Results are recorded after PostToolUse, so a secret that hooks/redact removes from a result is not in the file.
// Arguments are written as the tool received them. Calls that did not run, including mocked ones, are not recorded.
//
// # Latency
//
// A mock's latency delays its call and the step's later calls, because hooks run for one call after the other. Parallel
// tools' latencies would overlap instead. The delay ends with the run's context.
//
// # Concurrency
//
// One table or player can serve any number of runs at the same time. Row.Times is counted for each run, occurrences for
// each session, uses over all runs. A recorder is for one session.
package mock
