// Package events writes what an agent does as JSON Lines: one object an event, in
// the order in which things happen.
//
//	stream := events.New(os.Stdout)
//	a, err := builder.New().WithDriver(driver).WithObserver(stream).Build().Get()
//
// The form is docs/events.md. Every object has v, the version of the form, which
// changes when a field changes its meaning or goes; seq, which counts them from
// one; the time; and the type. Fields that are added later do not change v: readers
// pass over what they do not know.
//
// What hooks withheld, replaced or redacted is in no object. A Stream may be used
// by several runs at once; each object is written whole.
package events
