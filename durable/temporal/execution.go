package temporal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	// decideTimeout is how long a worker may take to decide the lease of a delivery. Then the server delivers again.
	decideTimeout = 3 * time.Second
	// returnDelay is how long a returned delivery waits. The server's timers have a floor of one second.
	returnDelay = time.Second
	// keepTimeout is how long the server keeps an offer.
	keepTimeout = 24 * time.Hour

	typeName  = "grapnel-offer"
	longestID = 200 // of at most 1,000 bytes that the server accepts
)

// executions are the executions of the server that hold offers: workflows or activities. Each of its methods is one call
// of the server.
type executions interface {
	// start starts the execution of an offer. If the run has one already, it returns its alreadyStartedError error.
	start(ctx context.Context, s start) error
	// replace ends the execution that the error describes, and starts one for a newer offer.
	replace(ctx context.Context, s start, old *alreadyStartedError) error
	// poll waits for a task. It returns nil when there is none after a while.
	poll(ctx context.Context, queue, identity string) (*task, error)
	// complete ends the execution of a task.
	complete(ctx context.Context, token []byte) error
	// delay delivers the task again after returnDelay.
	delay(ctx context.Context, token []byte) error
}

// start is what an execution is started with.
type start struct {
	id       string
	queue    string
	request  string // begins with the number of the offer: see requestID
	input    message
	priority uint64
}

// task is a task that a poll has received.
type task struct {
	token []byte
	input []byte // an encoded temporal.api.common.v1.Payloads
}

// alreadyStartedError is returned when a run has an execution with another request ID.
type alreadyStartedError struct {
	request string
	run     string // Temporal's ID of the execution
}

func (a *alreadyStartedError) Error() string { return "execution " + a.run + " has started already" }

// readAlreadyStarted returns the alreadyStartedError error in an error of the server, or else the error. Name is the type of the detail
// that describes it, with the request ID in field 1 and the execution in field 2.
func readAlreadyStarted(err error, name string) error {
	if connect.CodeOf(err) != connect.CodeAlreadyExists {
		return err
	}
	detail := errorDetail(err, name)
	request, requestErr := find(detail, 1)
	run, runErr := find(detail, 2)
	if requestErr != nil || runErr != nil {
		return errors.Join(err, requestErr, runErr)
	}
	return &alreadyStartedError{request: string(request), run: string(run)}
}

// requestID returns a new ID for starting the execution of an offer. Temporal stores it with the execution and returns it
// in alreadyStartedError, so that one call finds out whether a newer offer was made. It is not the same for each attempt,
// because then the server would not start an offer again whose execution an operator has terminated.
func requestID(seq int64) string { return strconv.FormatInt(seq, 10) + "/" + rand.Text() }

// requestSeq returns the number of the offer in a request ID, or -1 for the ID of another program.
func requestSeq(id string) int64 {
	text, _, _ := strings.Cut(id, "/")
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return seq
}

// offerInput is the input of an execution.
type offerInput struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
}

// newStart returns what the execution of an offer is started with.
func newStart(prefix string, o durable.Offer) (start, error) {
	data, err := json.Marshal(offerInput{Run: string(o.Run), Seq: o.Seq})
	if err != nil {
		return start{}, fmt.Errorf("encoding the offer of run %q: %w", o.Run, err)
	}
	encoding := message{}.text(1, "encoding").text(2, "json/plain")
	return start{
		id: executionID(prefix, string(o.Run)), queue: taskQueue(prefix, o.Key), request: requestID(o.Seq),
		input:    message{}.message(1, message{}.message(1, encoding).bytes(2, data)),
		priority: priorityKey(o.Priority),
	}, nil
}

// readOffer returns the offer in the input of an execution.
func readOffer(input []byte) (offerInput, error) {
	var o offerInput
	data, err := find(input, 1, 2)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	return o, err
}

// executionID returns the ID of the execution of a run. The server accepts only UTF-8 of limited length.
func executionID(prefix, run string) string {
	if len(run) > longestID || !utf8.ValidString(run) {
		sum := sha256.Sum256([]byte(run))
		run = hex.EncodeToString(sum[:])
	}
	return prefix + "-" + run
}

func taskQueue(prefix string, key durable.Key) string {
	return prefix + "-" + hex.EncodeToString(key[:])
}

// priorityKey maps a priority to Temporal's five, of which 1 comes first and 3 is normal.
func priorityKey(p int8) uint64 {
	switch {
	case p >= 64:
		return 1
	case p > 0:
		return 2
	case p == 0:
		return 3
	case p > -64:
		return 4
	}
	return 5
}

// priorityMessage returns a temporal.api.common.v1.Priority.
func (s start) priorityMessage() message { return message{}.number(1, s.priority) }

// workflows holds each offer in a workflow, which completes in its only workflow task.
type workflows struct {
	client    *client
	namespace string
	identity  string
}

// The values of enums that the calls use.
const (
	reuseAllowDuplicate       = 1
	conflictFail              = 1
	conflictTerminateExisting = 3
	commandStartTimer         = 3
	commandCompleteWorkflow   = 4
	queueNormal               = 1
)

func queueMessage(name string) message { return message{}.text(1, name).number(2, queueNormal) }

func (w *workflows) start(ctx context.Context, s start) error {
	return w.startWith(ctx, s, conflictFail)
}

func (w *workflows) replace(ctx context.Context, s start, _ *alreadyStartedError) error {
	return w.startWith(ctx, s, conflictTerminateExisting)
}

func (w *workflows) startWith(ctx context.Context, s start, conflict uint64) error {
	_, err := w.client.call(ctx, callTimeout, "StartWorkflowExecution", message{}.
		text(1, w.namespace).text(2, s.id).message(3, message{}.text(1, typeName)).message(4, queueMessage(s.queue)).
		message(5, s.input).duration(6, keepTimeout).duration(8, decideTimeout).text(9, w.identity).text(10, s.request).
		number(11, reuseAllowDuplicate).number(22, conflict).message(27, s.priorityMessage()))
	return readAlreadyStarted(err, "WorkflowExecutionAlreadyStartedFailure")
}

func (w *workflows) poll(ctx context.Context, queue, identity string) (*task, error) {
	reply, err := w.client.call(ctx, pollTimeout, "PollWorkflowTaskQueue",
		message{}.text(1, w.namespace).message(2, queueMessage(queue)).text(3, identity))
	if err != nil {
		return nil, err
	}
	// The first event of the history (8) is the start (6) with the input (6).
	return readTask(reply, 8, 1, 6, 6)
}

func (w *workflows) complete(ctx context.Context, token []byte) error {
	return w.respond(ctx, token, message{}.number(1, commandCompleteWorkflow).message(4, nil))
}

// delay starts a timer, after which the server makes a new workflow task. A workflow task that fails instead would be
// made again at once, and with a growing timeout.
func (w *workflows) delay(ctx context.Context, token []byte) error {
	return w.respond(ctx, token, message{}.number(1, commandStartTimer).
		message(3, message{}.text(1, "returned").duration(2, returnDelay)))
}

func (w *workflows) respond(ctx context.Context, token []byte, command message) error {
	_, err := w.client.call(ctx, callTimeout, "RespondWorkflowTaskCompleted",
		message{}.bytes(1, token).message(2, command).text(3, w.identity).text(9, w.namespace))
	return err
}

// activities holds each offer in a standalone activity.
type activities struct {
	client    *client
	namespace string
	identity  string
}

func (a *activities) start(ctx context.Context, s start) error {
	once := message{}.duration(1, returnDelay).float(2, math.Float64bits(1)).duration(3, returnDelay)
	_, err := a.client.call(ctx, callTimeout, "StartActivityExecution", message{}.
		text(1, a.namespace).text(2, a.identity).text(3, s.request).text(4, s.id).message(5, message{}.text(1, typeName)).
		message(6, queueMessage(s.queue)).duration(7, keepTimeout).duration(9, decideTimeout).message(11, once).message(12, s.input).
		number(13, reuseAllowDuplicate).number(14, conflictFail).message(18, s.priorityMessage()))
	return readAlreadyStarted(err, "ActivityExecutionAlreadyStartedFailure")
}

func (a *activities) replace(ctx context.Context, s start, old *alreadyStartedError) error {
	_, err := a.client.call(ctx, callTimeout, "TerminateActivityExecution", message{}.
		text(1, a.namespace).text(2, s.id).text(3, old.run).text(4, a.identity).text(5, s.request).text(6, "a newer offer"))
	if err != nil && connect.CodeOf(err) != connect.CodeNotFound {
		return err
	}
	return a.start(ctx, s)
}

func (a *activities) poll(ctx context.Context, queue, identity string) (*task, error) {
	reply, err := a.client.call(ctx, pollTimeout, "PollActivityTaskQueue",
		message{}.text(1, a.namespace).message(2, queueMessage(queue)).text(3, identity))
	if err != nil {
		return nil, err
	}
	return readTask(reply, 8)
}

func (a *activities) complete(ctx context.Context, token []byte) error {
	_, err := a.client.call(ctx, callTimeout, "RespondActivityTaskCompleted",
		message{}.bytes(1, token).text(3, a.identity).text(4, a.namespace))
	return err
}

// delay fails the activity, which the server repeats by its retry policy.
func (a *activities) delay(ctx context.Context, token []byte) error {
	failure := message{}.text(1, "the delivery was returned").text(2, "grapnel").message(5, message{}.text(1, "Returned"))
	_, err := a.client.call(ctx, callTimeout, "RespondActivityTaskFailed",
		message{}.bytes(1, token).message(2, failure).text(3, a.identity).text(4, a.namespace))
	return err
}

// supportsActivities reports whether a namespace has standalone activities. It is the first call to a server.
func supportsActivities(ctx context.Context, c *client, namespace string) (bool, error) {
	reply, err := c.call(ctx, callTimeout, "DescribeNamespace", message{}.text(1, namespace))
	if err != nil {
		return false, err
	}
	capabilities, err := find(reply, 1, 7)
	if err != nil {
		return false, err
	}
	has, err := findNumber(capabilities, 7)
	return has == 1, err
}

// readTask returns the task in the answer to a poll, with its token in field 1 and its input at the path.
func readTask(reply []byte, input ...protowire.Number) (*task, error) {
	token, err := find(reply, 1)
	if err != nil || len(token) == 0 {
		return nil, err
	}
	t := &task{token: token}
	t.input, err = find(reply, input...)
	return t, err
}
