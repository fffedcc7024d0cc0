// Command approval shows a run that waits for a person. An agent parks and its process ends. A person gets a link and
// approves a smaller amount over HTTP. Another process resumes the run from the store. The model is a script and the
// person is this program, so it needs no key.
//
//	go run ./examples/approval
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func main() {
	if err := showQuestion(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "approval:", err)
		os.Exit(1)
	}
}

type Transfer struct {
	To     string  `json:"to"`
	Amount float64 `json:"amount"`
}

var transfer = toolexec.Func("transfer", "Sends money to a person.",
	func(_ context.Context, in Transfer) (string, error) {
		return fmt.Sprintf("sent %.2f to %s", in.Amount, in.To), nil
	})

// guard requires a person's approval of payments above 100.
var guard = hooks.On(hooks.AtPreToolUse, "guard",
	func(_ context.Context, c hooks.ToolContext) hooks.Result {
		var in Transfer
		if err := c.Call().Decode(&in); err != nil {
			return c.Fail(err)
		}
		if in.Amount <= 0 {
			return c.Deny("the amount must be above zero")
		}
		if in.Amount > 100 {
			return c.Ask(fmt.Sprintf("%.2f is more than 100", in.Amount))
		}
		return c.Allow()
	}, hooks.ToolNamed("transfer"))

// process calls do as another process would, with its own store, keeper and agent. When it returns, only the store's
// records remain.
func process(
	ctx context.Context, path string, notify []durable.Notifier, do func(*agent.Agent, *durable.Keeper) (agent.State, error),
) (s agent.State, err error) {
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	keeper := durable.Keep(store, durable.Options{Notify: notify})
	clerk, err := builder.New().
		WithName("clerk").
		WithDriver(agenttest.Script(
			agenttest.Call("transfer", `{"to":"Alice","amount":40}`).Call("transfer", `{"to":"Bob","amount":250}`),
			agenttest.Say("Both have their money."),
		)).
		With(
			capability.UseTools(transfer),
			capability.UseHooks(guard),
			capability.UseDurability{Keeper: keeper},
			capability.UseApproval(agent.ParkApprover), // the answer comes later
		).
		Build().Get()
	if err != nil {
		return s, err
	}
	return do(clerk, keeper)
}

func showQuestion(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "approval")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "runs.db")

	// The desk serves the questions in the store to people.
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	decided := make(chan agent.RunID, 1)
	desk := approval.Server{Store: store, Options: approval.Options{
		Decided: func(_ context.Context, run agent.RunID) { decided <- run },
	}}
	listener, err := desk.Listen(ctx)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	links := approval.Links("http://" + listener.Addr().String())
	serving, closeDesk := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- desk.Serve(serving, listener) }()
	defer func() {
		closeDesk()
		err = errors.Join(err, <-served, store.Close())
	}()

	// One process runs the agent until it waits.
	var heard bytes.Buffer
	s, err := process(ctx, path, []durable.Notifier{approval.Log(&heard, links)}, func(clerk *agent.Agent, _ *durable.Keeper) (agent.State, error) {
		return clerk.RunWith(ctx, agent.RunSettings{ID: "run_1"}, agent.NewState(), agent.UserText("Pay Alice and Bob.")).Get()
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The run is %s, and the process that ran it is gone.\n", s.Status())

	// The person gets the link from the log, and reads the question.
	line := strings.TrimSpace(heard.String())
	_, rest, _ := strings.Cut(line, string(links))
	link := string(links) + rest
	fmt.Fprintf(out, "The log says: %s\n", strings.Replace(line, link, "http://…/approvals/…", 1))
	question, err := fetchQuestion(ctx, link)
	if err != nil {
		return err
	}
	var asked []string
	for _, q := range question.Questions {
		asked = append(asked, q.ID)
		fmt.Fprintf(out, "The link shows: %s asks about %s %s: %s.\n", q.AskedBy, question.Tool, question.Arguments, q.Reason)
	}

	// The person approves a smaller amount. A second approval is refused.
	for range 2 {
		answer, err := postDecision(ctx, link, map[string]any{
			"verdict": "approve", "by": "ann", "wait": question.Wait, "questions": asked, "arguments": Transfer{To: "Bob", Amount: 90},
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Ann approves 90: %s\n", answer)
	}

	// Another process resumes the run.
	run := <-decided
	s, err = process(ctx, path, nil, func(clerk *agent.Agent, keeper *durable.Keeper) (agent.State, error) {
		return keeper.Resume(ctx, clerk, run, durable.TakeFree).Get()
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Another process resumes %s, which is %s:\n%s", run, s.Status(), agenttest.Transcript(s))
	return nil
}

// Question holds the fields of a question that the example reads.
type Question struct {
	Wait      string `json:"wait"`
	Tool      string `json:"tool"`
	Questions []struct {
		ID      string `json:"id"`
		AskedBy string `json:"asked_by"`
		Reason  string `json:"reason"`
	} `json:"questions"`
	Arguments json.RawMessage `json:"arguments"`
}

func fetchQuestion(ctx context.Context, link string) (Question, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return Question{}, err
	}
	request.Header.Set("Accept", "application/json")
	var told struct {
		Question Question `json:"question"`
	}
	_, body, err := sendRequest(request)
	if err == nil {
		err = json.Unmarshal(body, &told)
	}
	var flat bytes.Buffer
	err = errors.Join(err, json.Compact(&flat, told.Question.Arguments))
	told.Question.Arguments = flat.Bytes()
	return told.Question, err
}

func postDecision(ctx context.Context, link string, decision any) (string, error) {
	body, err := json.Marshal(decision)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, link, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	status, body, err := sendRequest(request)
	var told struct {
		Message string `json:"message"`
	}
	if err == nil {
		err = json.Unmarshal(body, &told)
	}
	return fmt.Sprintf("%s: %s", status, told.Message), err
}

func sendRequest(request *http.Request) (status string, body []byte, err error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.Status, body, err
}
