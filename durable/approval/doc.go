// Package approval lets people answer a hook's question about a tool call over HTTP, at any later time. It provides a
// JSON endpoint, and notifiers that tell people about the question. Package coordinator/web has the pages.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	// …
//	server := approval.Server{Store: store}
//	listener, err := server.Listen(ctx) // on the loopback
//	// …
//	go server.Serve(ctx, listener)
//	links := approval.Links("http://" + listener.Addr().String())
//
//	keeper := durable.Keep(store, durable.Options{Notify: []durable.Notifier{
//		approval.Log(os.Stderr, links),
//		approval.Webhook{URL: "https://chat.example.com/hook", Links: links},
//	}})
//	a, err := builder.New().WithDriver(driver).With(
//		capability.UseDurability{Keeper: keeper},
//		capability.UseApproval(agent.ParkApprover), // the run parks: the answer comes later
//	).Build().Get()
//
// # Links
//
// A parked run has one token for each waiting call: 32 random bytes, of which the store keeps the SHA-256. Everyone who
// has the link with the token may decide about that call with those arguments, once. The handler does not verify the
// names that people enter. When the run parks again, waiting calls get new tokens, and the old links stop working.
//
// # GET shows, POST decides
//
// GET and HEAD /approvals/{token} never decide, so programs that open links in advance do no harm. The response is
// {"question": {…}}, or Options.Page shows it to a browser. POST accepts the page's form, or JSON:
//
//	{"verdict": "approve", "by": "ann", "reason": "…", "arguments": {…}, "wait": "…", "questions": ["…"]}
//
// The verdict is approve, reject (the run ends) or reject_and_continue. Arguments are allowed only with approve and
// replace the ones in the question. The wait and question IDs name what the page showed, so that people decide only what they
// saw. Unknown and duplicate members are errors.
//
//   - 200: shown, or decided.
//   - 400, 415, 413, 422: the decision is invalid; nothing was decided.
//   - 401: the inbox, without a sign-in.
//   - 403: a browser sent it from a page of another site; or the answer does not count, for the reason given.
//   - 404: there is no such question.
//   - 409: it was decided before, perhaps by the same answer, and the reply shows the decision; the deadline has passed; the run
//     has gone on; or the wait is another one.
//   - 421: the request is for a host that is not one of the server: see Options.Origins.
//   - 503: the store does not respond.
//
// # Inbox and identities
//
// With Options.People or Options.Identify the handler verifies who sends a request. It then serves an inbox of what all runs
// wait for: GET /approvals/ lists it, and /approvals/wait?run=…&wait=… shows and decides one, as a link does. Questions with
// approvers or a quorum count only answers with an identity; a link proves none.
//
// # Security
//
// Links are secrets: this package does not log them, and pages are not cached and send no referrer. HTTP without TLS is
// only for the loopback; Server refuses other addresses unless Remote is set. Behind a proxy that serves HTTPS, set Links
// to the origin of the proxy, and add it to Options.Origins. See docs/approvals.md.
package approval
