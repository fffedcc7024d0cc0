// Package events writes the events of an agent as JSON Lines: one object for each event, in the order of the
// events.
//
//	stream := events.New(os.Stdout)
//	a, err := builder.New().WithDriver(driver).WithObserver(stream).Build().Get()
//
// docs/streams.md describes the format. Every object has v, the version of the format, which changes when a
// field changes its meaning or is removed; seq, the number of the object, from one; the time; and the type.
// Added fields do not change v: readers must ignore unknown fields.
//
// No object contains text that hooks withheld, replaced or redacted. Several runs may use a Stream at once;
// each object is written in one piece.
package events
