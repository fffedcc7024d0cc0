// Package mock answers tool calls in the place of the tools: from a table, for evals and tests, or from a recording of what
// the tools once answered.
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
//		fmt.Println("never asked for:", row)
//	}
//
// Recording, and playing what was recorded:
//
//	file, err := os.Create("tools.jsonl")
//	// …
//	recorder := mock.Record(file) // for capability.UseHooks(recorder.Hook())
//	// …
//	recording, err := mock.Open("tools.jsonl")
//	player := mock.Replay(recording, mock.Options{}) // for capability.UseHooks(player.Hook())
//
// # What is answered
//
// The agent keeps its tools: the model is told of them, their schemas check the arguments, and only then a mock answers; a
// call that breaks its schema gets the schema's complaint. The hooks are asked after the others of PreToolUse, so that a
// guard denies what it would deny, and a rewritten call is looked up as rewritten. An answer that another hook of this
// package gave stands, and is not looked up again: a table can go before a recording.
//
// A mocked result has the status mocked and no attempts, may be a failure, and goes through PostToolUse like any other:
// redaction cleans it. The first row that matches answers. A call that nothing matches is denied with a text that says so,
// or passed on to the tool, see Options.Unmatched.
//
// # Recordings
//
// A recording is JSON Lines, one answered call of a session a line:
//
//	{"tool":"weather","arguments":{"city":"Oslo"},"occurrence":1,"text":"-3 °C, snow","duration_ms":812}
//	{"tool":"weather","arguments":{"city":"Rome"},"occurrence":1,"text":"tool \"weather\": failed: no such city","failed":true,"duration_ms":3}
//
// Calls go by tool and arguments, compared as JSON values, and by how often the same call came before in the session: a
// call that is made a second time gets the second answer. (In later runs of a session an answer that a hook at PostToolUse
// replaced is that hook's, and counts as none.) It is read strictly, since people edit it: unknown members,
// occurrences that do not count up from one, and arguments that are no object are errors that name file and line.
// Content other than text stands in "content", as parts; of a failure only the text is played.
//
// What is recorded is what hooks let out, after redaction: a secret that hooks/redact takes out of a result is not in the
// file. Arguments are written as the tool got them. Calls that did not run, mocked ones among them, are not recorded.
//
// # Latency
//
// A mock that takes its time holds up its call, and those of the step behind it, since hooks are asked about one call
// after the other; tools that run in parallel would overlap. It ends with the run's context.
//
// # Concurrency
//
// One table or player serves any number of runs at once: Row.Times and occurrences are counted in each run or session by
// itself, uses over all of them. A recorder is for one session.
package mock
