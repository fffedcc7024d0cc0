// Package provenance says who brought a value into a run: the operator, the user, a field of a tool's answer that no stranger
// else can write, people who had to sign in, or text that anyone may have written. A policy can so tell what the user
// wants from what a web page wants.
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
// In a policy file the sources are under "sources", and conditions ask from_trusted(args.to): see Functions.
//
// # Levels
//
// A value has the most trusted level at which it was seen: FromUser and FromSystem, FromTrusted, FromKnown, FromOthers.
// A value that was never seen is Nowhere: the model made it up or assembled it. A value that stands both in a stranger's
// text and in a trusted field is trusted, because the stranger cannot write to the field.
//
//   - The user's words are the messages of role user without a Source. In a run that another run started no person is a
//     user: its input was written by a model. Messages that hooks and tools add, in whatever role, have a Source, and are
//     strangers' unless Sources.Messages says otherwise.
//   - The system text is the operator's.
//   - A trusted field is one that Sources name, of an answer that the tool itself gave, or a hook in its place: not an
//     error, not the sentence about a denied call. Answers are read as JSON or YAML, whole, so that text which imitates
//     a field is text. A field vouches for a short value on one line; anything longer is text of strangers.
//   - A known field is written by people who had to sign in. They may point to things.
//   - Everything else is strangers' text.
//
// An untrusted value that the model gives to a tool that may change things stays strangers' when it comes back in a
// trusted field, whether the call was allowed or denied: the agent put it there. Every tool that Source.Reads does not
// name may change things.
//
// # Pointing
//
// An answer is named when all texts that its call was given are the user's words, or those of known people in an answer
// that is itself named: the file that the user mentions, or the page linked in the message that the user mentions.
// FromNamed and FromNamedText accept values in such answers. These values are as trustworthy as the place to which the
// user pointed.
//
// # Values
//
// Values are compared in normal forms:
//
//   - mail addresses without the display name, ignoring case;
//   - web addresses without http(s), www., a trailing slash and a fragment;
//   - numbers by their numeric value;
//   - dates as year, month and day, however they are written: a moment by its day, and a date that was given without a
//     year in any year;
//   - ids such as IBANs, phone and card numbers without the characters between their letters and digits;
//   - other texts by their words, all of them and in order.
//
// An address within a text is found; a part of an address is not. "Tomorrow", and month names in languages other than
// English, are ordinary words.
//
// A text without letters and digits comes from no source, and neither does a text with a "*" in it, because it names
// nothing in particular. The names of members are values, too: {"mallory@example.com": "rw"} names a person. Only the
// names of a call's own arguments belong to the tool: see Arguments. For an empty value (null, true, an empty text, list
// or map) every From function returns true, so a rule must also check that the value is not empty.
//
// When a text as a whole was never seen, its parts are checked: Tainted reports whether any address, id, or five words
// in a row are strangers', and Origin lists the parts.
//
// # What it cannot see
//
// The author of a value says nothing about its purpose: a model may be talked into paying the right person the wrong
// sum. A value that a stranger's text spells out in pieces is not found; policies should therefore require values from a
// known source, instead of only refusing tainted ones. Pictures and other parts that are not text are not read.
//
// # Cost, memory, concurrency
//
// The index of a run is built when a policy first asks, and from then on each message is read once: the cost of a step
// depends on what it adds. Strangers' text is read only when a policy asks about it. An answer takes about a
// microsecond.
//
// Options.MaxKeys bounds the memory of a run; beyond the bound nothing becomes trusted, and a value that is not found
// counts as strangers'. The index is not stored: it is rebuilt for a run that is resumed in another process, for each
// run of a session, and for a state that does not follow the last one, such as a fork. The index compares the last
// messages that it read to detect that.
//
// Trackers and Trails are safe for concurrent use. Calls about one run wait for each other.
package provenance
