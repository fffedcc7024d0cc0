// Package replay reads recordings of agent runs (what the model said, which tools it called with which
// arguments, and what they answered) and plays them: the recorded turns are the model, the recorded answers the
// tools, and everything between them is a real agent with its hooks.
//
//	recording, err := replay.Open("session.jsonl.gz")
//	if err != nil {
//		return err
//	}
//	defer recording.Close()
//	for run, err := range recording.Records() {
//		if err != nil {
//			return err // the file, the line and the place in it
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
// One agent plays any number of sessions, also at once. After the first departure the recorded model talks to a
// world that is no longer there: it was not told what this agent was told.
//
// # What is played
//
// The messages are cut into runs and turns; see Session. Nothing is asked of them: a run may begin without a user,
// end in the middle of a batch of calls, or have no turn at all. Answers are given by place (this call of this turn),
// not by id, so ids may come up again; an answer that came late in the recording is given at once. A call without an
// answer is still decided upon and then fails, as there is nothing to tell. Where the recording ends and the model
// would have to speak, the run is stopped with StopRecordingEnded.
//
// # The format
//
// A recording is JSON Lines, plain or gzip (told apart by the first two bytes, not by the name): one run a
// line, a JSON object that holds at least "id" and "messages". Messages are in OpenAI chat form. Tool schemas
// stand in a file of their own, see LoadTools; a run names it in ToolsRef, relative to the recording's folder.
//
// # What is kept
//
// A recording is evidence, so reading it changes nothing. Argument strings are kept byte for byte, also when
// they are no JSON; a null content stays apart from an empty one; members that the types here have no field for
// stay in Other. What cannot be kept as it is makes an error: text that is not valid UTF-8, a name given twice
// in one object. Member names are case-sensitive. Of null and absent, elsewhere than in arguments and Other,
// only one is kept: the zero value.
//
// Nothing is judged either. Runs with several user messages, two assistant messages in a row, calls without
// answers, call ids used twice, or without any message at all are what agents leave behind, and come out as
// they went in.
//
// # Failure
//
// Every error names the recording and the line, and is a *LineError. A line that cannot be read does not end the
// reading: a loop that goes on gets the next line. See Reader.
package replay
