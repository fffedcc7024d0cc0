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
// In a policy file the sources stand under "sources", and conditions ask from_trusted(args.to): see Functions.
//
// # Levels
//
// A value has the best level at which it was seen: FromUser and FromSystem, FromTrusted, FromKnown, FromOthers. One that
// was not seen is Nowhere: the model made it up, or put it together. What a stranger's text and a trusted field both have
// is trusted, for the stranger can add nothing to the field.
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
// What the model gives to a tool that may change things, and what is not trusted at that time, stays strangers' when it
// comes back in a trusted field: whether the call was let through or denied, the agent put it there. A tool that
// Source.Reads does not name may change things.
//
// # Pointing
//
// An answer is named when everything textual that its call was given are the user's words, or those of known people in
// an answer that is named itself: the file that the user speaks of, the page to which the message leads that the user
// speaks of. FromNamed and FromNamedText ask for values in such answers. They are as good as what the user pointed to.
//
// # Values
//
// Values are compared in normal forms:
//
//   - mail addresses without a name and regard to case;
//   - web addresses without http(s), www., a last slash and a fragment;
//   - numbers by their worth;
//   - dates as year, month and day, however they are written: a moment by its day, and a date that was given without a
//     year in any year;
//   - ids such as IBANs, phones and cards without what stands between their letters and digits;
//   - other texts by their words, all of them and in order.
//
// An address in a text is found there; a part of an address is not. "Tomorrow", and months in other languages than
// English, are words.
//
// A text without letters and digits is from no one, and so is one with a "*" in it: it names no one in particular. The
// names of members are values, too: {"mallory@example.com": "rw"} names a person. Only the names of a call's own
// arguments are the tool's: see Arguments. Of nothing (null, true, an empty text, list or map), everything is true; a rule
// asks besides whether there is something.
//
// A text that stands nowhere as a whole is looked at in parts: Tainted asks whether any address, id, or five words in a
// row are strangers', and Origin tells the parts.
//
// # What it cannot see
//
// Who wrote a value is not why it is there: a model may be talked into paying the right person the wrong sum. What a
// stranger's text spells out in pieces stands nowhere; policies should ask for values from a known source, and not only that
// they are not tainted. Pictures and other parts that are no text are not read.
//
// # Cost, memory, concurrency
//
// An index is made for a run when a policy first asks, and from then on each message is read once: a step costs what it
// adds. Strangers' text is read only when a policy asks about it. An answer takes about a microsecond.
//
// The memory of a run is bounded by Options.MaxKeys; behind the bound nothing becomes trusted, and what cannot be found
// is strangers'. The index is not stored: for a run that is resumed in another process, and for each run of a session, it
// is made again. So it is for a state that is not the successor of the last one, a fork; the last messages that were read
// tell that.
//
// Trackers and Trails are safe for concurrent use; those who ask about one run wait for each other.
package provenance
