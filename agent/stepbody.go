package agent

import "time"

// stepBody is the data of a recorded step. It has room for the answer to one call, which is enough for most steps.
// Without it a step makes two more allocations and takes 9 % more instructions (BenchmarkContender/calls=1).
type stepBody struct {
	started   compactTime
	index, at int32 // at is the index of the reply in the transcript, if there is a reply
	message   Message
	answers   []messageBody // the results
	finish    FinishReason
	usage     *Usage // nil for none
	model     string
	id        string
	took      time.Duration
	failure   *Failure
}

var emptyStep stepBody

// compactTime is a time.Time without monotonic clock and zone, at half the size. Every step that a session keeps has one.
// The zero value is the zero time.
type compactTime struct {
	seconds int64
	behind  int32 // nanoseconds plus one
}

func compactTimeOf(t time.Time) compactTime { return compactTime{t.Unix(), int32(t.Nanosecond()) + 1} } //nolint:gosec // at most 1e9

func (m compactTime) time() time.Time {
	if m == (compactTime{}) {
		return time.Time{}
	}
	return time.Unix(m.seconds, int64(m.behind)-1)
}
