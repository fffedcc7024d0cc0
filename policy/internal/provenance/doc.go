// Package provenance tracks who brought a value into a run: the operator, the user, a field in a tool's answer that
// strangers cannot write, people who had to sign in, or strangers. A policy can then distinguish a request from the user
// from a request in a web page.
//
//	tracker, err := provenance.New(provenance.Options{Sources: provenance.Sources{Tools: []provenance.Source{
//		{Tools: []string{"get_*", "search_*"}, Reads: true},
//		{Tools: []string{"search_contacts"}, Trusted: []string{"email"}},
//		{Tools: []string{"search_mail"}, Known: []string{"sender"}},
//	}}})
//	// …
//	guard := hooks.On(hooks.AtPreToolUse, "recipient", func(_ context.Context, c hooks.ToolContext) hooks.Result {
//		var mail struct{ To []string }
//		if err := c.Call().Decode(&mail); err != nil {
//			return c.Fail(err)
//		}
//		trail := tracker.Of(c.State())
//		if len(mail.To) == 0 || !trail.FromTrusted(mail.To) {
//			return c.Ask("who is that? " + trail.Origin(mail.To).String())
//		}
//		return c.Allow()
//	}, hooks.ToolNamed("send_mail"))
//
// In a policy file, the sources are under "sources", and conditions ask from_trusted(args.to): see Functions.
//
// # Levels
//
// A value has the most trusted level at which it was seen: FromUser and FromSystem, FromTrusted, FromKnown, FromOthers.
// A value that was never seen is Nowhere: the model made it up or assembled it. A value that is both in a
// stranger's text and in a trusted field is trusted, because the stranger cannot write to the field.
//
//   - FromUser: user messages without a Source. If another run started this run, the input does not count,
//     because a model wrote it. Messages that hooks and tools add have a Source, in any role, and count as strangers'
//     text unless Sources.Messages sets another level.
//   - FromSystem: the system text, which the operator wrote.
//   - FromTrusted: the fields that Source.Trusted lists, in an answer from the tool or from a hook in its place. Errors
//     and messages about denied calls have no trusted fields. An answer is parsed as a whole, as JSON or YAML, so text
//     that imitates a field is not a field. Only a short value on one line is trusted; a longer one is strangers' text.
//   - FromKnown: the fields that Source.Known lists, written by people who had to sign in. They may point to things.
//   - FromOthers: everything else, which strangers may have written.
//
// If the model gives an untrusted value to a tool that may change things, the value stays untrusted when it comes back in
// a trusted field, because the agent put it there. This applies to allowed and to denied calls. Every tool that is not
// listed with Source.Reads may change things.
//
// # Pointing
//
// An answer is named if all strings in its call's arguments come from the user, or from known people in an answer that
// is itself named. Examples are a file that the user mentions, and a page linked in a message that the user mentions.
// FromNamed and FromNamedText accept values in such answers. These values are as trustworthy as the place to which the
// user pointed.
// user pointed.
//
// # Values
//
// Values are compared in normal forms:
//
//   - mail addresses without the display name, ignoring case;
//   - web addresses without http(s), www., a trailing slash and a fragment;
//   - numbers by their numeric value;
//   - dates as year, month and day in any notation: a time by its day, and a date without a year in any year;
//   - IDs such as IBANs, phone and card numbers without the characters between their letters and digits;
//   - paths and other strings without spaces by their letters, digits and the signs between them; strangers' text also
//     without the signs;
//   - other strings by their words, all of them and in order.
//
// An address within a text is found; part of an address is not. "Tomorrow", and month names in languages other than
// English, are ordinary words.
//
// A string without letters and digits has no source, and neither has a string with "*", because it does not name a
// particular thing. Member names are values, too: {"mallory@example.com": "rw"} names a person. Only the names of the
// call's own arguments belong to the tool: see Arguments. For an empty value (null, true, an empty string, list
// or map) every From function returns true, so a rule must also check that the value is not empty.
//
// If a text as a whole was never seen, its parts are checked: Tainted reports whether any address, ID, or five words
// in a row come from strangers, and Origin lists the parts.
//
// # Limits
//
// A value's author says nothing about its purpose: a model may be talked into paying the right person the wrong
// sum. A value that a stranger's text spells out in pieces is not found; policies should therefore require values from a
// known source, instead of only refusing tainted ones. Pictures and other parts that are not text are not read.
//
// # Cost, memory, concurrency
//
// A run's index is built when a policy first asks, and from then on each message is read once: a step's cost
// depends only on its own messages. Strangers' text is read only when a policy asks about it. A question to a Trail takes
// about a microsecond.
//
// Options.MaxKeys bounds a run's memory; beyond the bound nothing becomes trusted, and a value that is not found
// counts as a stranger's value. The index is not stored: it is rebuilt for a run that is resumed in another process, for
// each run in a session, and for a state that does not follow the last one, such as a fork. To detect that, the index
// compares the last messages that it read.
// messages that it read to detect that.
//
// Trackers and Trails are safe for concurrent use. Calls about one run wait for each other.
package provenance
