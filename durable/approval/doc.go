// Package approval lets people answer, over HTTP and later, what a hook asked about a
// tool call: a small page, a JSON endpoint, and notifiers that tell people.
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
// A parked run has one token for each call that waits: 32 random bytes, of which the
// store keeps the SHA-256. The link with the token is the right to decide about that call
// with those arguments, once, for the person who has it; what people say their name is, is not
// checked. When the run parks again, what still waits gets new tokens, and the old links
// are dead.
//
// # GET shows, POST decides
//
// GET and HEAD /approvals/{token} never decide, so programs that open links ahead of
// people do no harm. The page has no scripts and loads nothing. A program that sends
// "Accept: application/json" gets {"question": {…}} instead. POST takes the page's form, or
// JSON:
//
//	{"verdict": "approve", "by": "ann", "reason": "…", "arguments": {…}, "hash": "…"}
//
// The verdict is approve, reject (the run ends) or reject_and_continue; arguments, with
// approve only, go in the place of those that were asked about; hash is that of the
// question as it was shown, so that people approve only what they saw. Members that
// are unknown, or stand there twice, are refused.
//
//   - 200: shown, or decided.
//   - 400, 415, 413, 422: the decision is invalid; nothing was decided.
//   - 403: a browser sent it from another site.
//   - 404: nothing is asked under this token, whatever the reason.
//   - 409: another person was faster, and here is what they said; or the hash is another one.
//   - 410: the time is over.
//   - 503: the store does not answer.
//
// # What it relies on
//
// Links are secrets: nothing here logs them, and pages neither are stored nor tell other
// sites where a reader came from. HTTP without TLS is for the loopback, and Server
// refuses other addresses unless told; behind a proxy that speaks HTTPS, name its origin in Links, and in
// Options.Origins if it changes the Host header. See docs/approvals.md.
package approval
