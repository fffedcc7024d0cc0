// Package replay reads and plays recordings of agent runs: the model's replies, its tool calls with their arguments,
// and the answers. Recorded turns replace the model, recorded answers replace the tools, and everything else is a real
// agent with its hooks.
//
//	recording, err := replay.Open("session.jsonl.gz")
//	if err != nil {
//		return err
//	}
//	defer recording.Close()
//	for run, err := range recording.Records() {
//		if err != nil {
//			return err // names the file, the line and the position in it
//		}
//		for _, call := range run.Calls() {
//			fmt.Println(run.ID, call.ID, call.Function.Name, call.Function.Arguments)
//		}
//	}
//
// Playing one:
//
//	schemas, err := replay.LoadTools("tools.json")
//	// …
//	a, err := builder.New().
//		WithDriver(replay.Driver{}).
//		With(
//			capability.UseTools(replay.Tools(schemas...)...),
//			capability.UseCriteria(replay.GoOn),
//			capability.UseHooks(noWipe),
//		).
//		Build().Get()
//	// …
//	runs, err := replay.Load("session.jsonl.gz")
//	// …
//	session, err := replay.NewSession(runs[0])
//	// …
//	played, err := session.Play(ctx, a)
//	for _, d := range played.Departures {
//		fmt.Println(d) // where the play left the recording: a denied call, other arguments …
//	}
//
// One agent can play any number of sessions, also at the same time. After the first departure, the recorded
// model no longer reacts to this agent: the recorded model saw other answers.
//
// # Playing
//
// The messages are divided into runs and turns; see Session. Any list of messages can be played. A run can begin
// without a user message, end in the middle of a batch of calls, or have no turn at all. Answers are matched by
// position (the call's index in its turn), not by ID, so IDs can repeat. An answer that came late in the recording is
// returned immediately. Hooks still decide on a call without an answer, and then the call fails. If the recording ends
// where the model would take another turn, the run is stopped with StopRecordingEnded.
//
// # The format
//
// A recording is JSON Lines, plain or gzip (recognized by the first two bytes, not by the name). Each line is one run,
// as a JSON object that has at least "id" and "messages". Messages are in OpenAI chat form. Tool schemas are in a
// separate file, see LoadTools. A run names it in ToolsRef, relative to the recording's folder.
//
// # Fidelity
//
// A recording is evidence, so reading it changes nothing. Argument strings are kept byte for byte, also when they are
// not JSON. Null content differs from empty content. Members without a field in this package's types are in Other. Text
// that is not valid UTF-8 and duplicate names in an object cannot be kept, so they are errors. Member names are
// case-sensitive. Null and absent members become the zero value, except in arguments and Other.
//
// Reading does not validate a run. Real runs can have several user messages, two assistant messages in a row, calls
// without answers, duplicate call IDs, or no messages at all. The package returns them unchanged.
//
// # Failure
//
// Every error names the recording and the line, and is a *LineError. Reading can continue after a malformed line. See
// Reader.
package replay
