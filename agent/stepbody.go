package agent

import "time"

// stepBody is the data of a recorded step.
type stepBody struct {
	started   time.Time // without monotonic clock, local
	index, at int32     // at is the index of the reply in the transcript, if there is a reply
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
