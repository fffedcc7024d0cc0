package temporal_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/grapnel-go/grapnel/durable/temporal"
)

// fakeServer is a Temporal frontend in memory. It has workflows with one task and standalone activities, with shorter
// times than a real one.
type fakeServer struct {
	activities bool
	address    string
	handler    http.Handler

	mu         sync.Mutex
	executions map[string]*execution
	started    []string // request IDs
	polls      map[string]int
	fail       map[string]error // by method
	change     chan struct{}    // closed when an execution changes
	count      int
}

type execution struct {
	queue, request, run string
	input               []byte
	token               string // of the delivered task
	after               time.Time
}

const (
	fakeTimeout = 300 * time.Millisecond
	fakeDelay   = 30 * time.Millisecond
	fakePoll    = 500 * time.Millisecond
)

func startFake(t *testing.T, activities bool) *fakeServer {
	t.Helper()
	f := &fakeServer{
		activities: activities, executions: map[string]*execution{}, polls: map[string]int{}, fail: map[string]error{},
		change: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for name, method := range map[string]func(ctx context.Context, body []byte) (temporal.Message, error){
		"DescribeNamespace": f.describe, "StartWorkflowExecution": f.startWorkflow, "PollWorkflowTaskQueue": f.pollWorkflow,
		"RespondWorkflowTaskCompleted": f.respondWorkflow, "StartActivityExecution": f.startActivity,
		"PollActivityTaskQueue": f.pollActivity, "RespondActivityTaskCompleted": f.completeActivity,
		"RespondActivityTaskFailed": f.failActivity, "TerminateActivityExecution": f.terminateActivity,
	} {
		mux.Handle(temporal.Service+name, connect.NewUnaryHandler(temporal.Service+name,
			func(ctx context.Context, req *connect.Request[[]byte]) (*connect.Response[[]byte], error) {
				f.mu.Lock()
				err := f.fail[name]
				f.mu.Unlock()
				if err != nil {
					return nil, err
				}
				reply, err := method(ctx, *req.Msg)
				if err != nil {
					return nil, err
				}
				return connect.NewResponse((*[]byte)(&reply)), nil
			}, connect.WithCodec(temporal.BytesCodec{})))
	}
	f.handler = mux
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	f.address = server.Listener.Addr().String()
	return f
}

// notify wakes waiting polls. The caller holds the lock.
func (f *fakeServer) notify() {
	close(f.change)
	f.change = make(chan struct{})
}

func (f *fakeServer) failMethod(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[name] = err
}

// deleteAll forgets all executions, as if the database was deleted.
func (f *fakeServer) deleteAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executions = map[string]*execution{}
}

// waitingPolls returns the number of polls of each task queue.
func (f *fakeServer) waitingPolls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.polls)
}

func (f *fakeServer) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.started)
}

func (f *fakeServer) describe(_ context.Context, body []byte) (temporal.Message, error) {
	if string(temporal.Find(body, 1)) != "default" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("namespace not found"))
	}
	capabilities := temporal.Message{}
	if f.activities {
		capabilities = append(capabilities, 7<<3, 1)
	}
	return concat(field(1, concat(field(7, capabilities)))), nil
}

func (f *fakeServer) startWorkflow(_ context.Context, body []byte) (temporal.Message, error) {
	return f.start("WorkflowExecutionAlreadyStartedFailure", temporal.FindNumber(body, 22) == 3,
		temporal.Find(body, 2), temporal.Find(body, 4, 1), temporal.Find(body, 10), temporal.Find(body, 5))
}

func (f *fakeServer) startActivity(_ context.Context, body []byte) (temporal.Message, error) {
	return f.start("ActivityExecutionAlreadyStartedFailure", false,
		temporal.Find(body, 4), temporal.Find(body, 6, 1), temporal.Find(body, 3), temporal.Find(body, 12))
}

func (f *fakeServer) start(failure string, replace bool, id, queue, request, input []byte) (temporal.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.executions[string(id)]; old != nil && !replace {
		err := connect.NewError(connect.CodeAlreadyExists, errors.New("already started"))
		detail, detailErr := connect.NewErrorDetail(&anypb.Any{
			TypeUrl: "type.googleapis.com/temporal.api.errordetails.v1." + failure,
			Value:   concat(field(1, []byte(old.request)), field(2, []byte(old.run))),
		})
		if detailErr != nil {
			return nil, detailErr
		}
		err.AddDetail(detail)
		return nil, err
	}
	f.count++
	f.started = append(f.started, string(request))
	f.executions[string(id)] = &execution{queue: string(queue), request: string(request), input: input, run: strconv.Itoa(f.count)}
	f.notify()
	return field(1, []byte("run")), nil
}

func (f *fakeServer) pollWorkflow(ctx context.Context, body []byte) (temporal.Message, error) {
	token, e, err := f.poll(ctx, string(temporal.Find(body, 2, 1)))
	if e == nil {
		return nil, err
	}
	return concat(field(1, token), field(8, field(1, field(6, field(6, e.input))))), nil
}

func (f *fakeServer) pollActivity(ctx context.Context, body []byte) (temporal.Message, error) {
	token, e, err := f.poll(ctx, string(temporal.Find(body, 2, 1)))
	if e == nil {
		return nil, err
	}
	return concat(field(1, token), field(8, e.input)), nil
}

func (f *fakeServer) poll(ctx context.Context, queue string) ([]byte, *execution, error) {
	late := time.After(fakePoll)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls[queue]++
	defer func() { f.polls[queue]-- }()
	for {
		for _, e := range f.executions {
			if e.queue == queue && !time.Now().Before(e.after) {
				f.count++
				e.token, e.after = strconv.Itoa(f.count), time.Now().Add(fakeTimeout)
				return []byte(e.token), e, nil
			}
		}
		change := f.change
		f.mu.Unlock()
		var err error
		done := false
		select {
		case <-change:
		case <-time.After(fakeDelay):
		case <-late:
			done = true
		case <-ctx.Done():
			err, done = ctx.Err(), true
		}
		f.mu.Lock()
		if done {
			return nil, nil, err
		}
	}
}

func (f *fakeServer) respondWorkflow(_ context.Context, body []byte) (temporal.Message, error) {
	return f.respond(temporal.Find(body, 1), temporal.FindNumber(temporal.Find(body, 2), 1) == 3)
}

func (f *fakeServer) completeActivity(_ context.Context, body []byte) (temporal.Message, error) {
	return f.respond(temporal.Find(body, 1), false)
}

func (f *fakeServer) failActivity(_ context.Context, body []byte) (temporal.Message, error) {
	return f.respond(temporal.Find(body, 1), true)
}

func (f *fakeServer) respond(token []byte, again bool) (temporal.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, e := range f.executions {
		if e.token != string(token) {
			continue
		}
		if again {
			e.token, e.after = "", time.Now().Add(fakeDelay)
		} else {
			delete(f.executions, id)
		}
		return nil, nil
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("task not found"))
}

func (f *fakeServer) terminateActivity(_ context.Context, body []byte) (temporal.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := string(temporal.Find(body, 2))
	if e := f.executions[id]; e == nil || e.run != string(temporal.Find(body, 3)) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("activity not found"))
	}
	delete(f.executions, id)
	return nil, nil
}

// field returns a message with one field.
func field(number byte, content []byte) temporal.Message {
	if len(content) > 127 {
		return slices.Concat(temporal.Message{number<<3 | 2, byte(len(content)&127 | 128), byte(len(content) >> 7)}, content)
	}
	return slices.Concat(temporal.Message{number<<3 | 2, byte(len(content))}, content)
}

func concat(parts ...temporal.Message) temporal.Message { return slices.Concat(parts...) }
