// Package recorded reads what agents did before: runs in whatever form they were written down.
//
//	r, err := recorded.Open("session.jsonl")
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	for run, err := range r.Runs() {
//		if err != nil {
//			fmt.Fprintln(os.Stderr, err) // the file, the line, and what is wrong there
//			continue
//		}
//		for _, call := range run.Calls() {
//			fmt.Println(run.ID, call.Function.Name, call.Function.Arguments)
//		}
//	}
//
// # Forms
//
// The form of a file is found by what stands in it, not by its name, unless Reader.Format says it. Any of them may be
// packed with gzip.
//
//   - Replay: this module's recordings, one run a line, with labels if there are any; see package replay.
//   - OpenAI: chat messages. A list of messages, a request with "messages" (and "tools", "model"), a line of a batch
//     ("body"), a pair of "request" and "response"; one to a file, one to a line, or a list of them.
//   - Anthropic: the same with the Messages API, whose messages have blocks.
//   - ClaudeCode: the session files of Claude Code, one entry a line.
//   - Events: what "grapnel run --json" writes.
//   - Audit: the log of package audit, where it holds texts and not only their hashes.
//   - OTLP: spans in OTLP JSON, as collectors write them to files, with the GenAI conventions' messages on them.
//
// # What comes out
//
// A Run is a replay.Record, so that it can be played, with the place where it was found. Arguments are the text that
// was recorded; where a form has an object there, they are the object's text. Run.Lacks says what a form cannot tell.
//
// # Failure
//
// What cannot be read is an error that says where, a *replay.LineError, and the reading goes on with the next run:
// a caller that counts the errors knows how many were passed over. A file whose form cannot be told is ErrUnknown. Memory is
// bounded by the runs that are under way at one place of the file, not by the file.
package recorded
