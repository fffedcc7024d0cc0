// Package desk is what the agents of these examples have in common: two tools, and a person who approves.
package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// Model is the name of the model.
const Model = "gpt-4.1-mini"

// Desk has the tools of an agent at a desk.
type Desk struct {
	// Approve asks the person.
	Approve func(question string) bool

	mu     sync.Mutex
	ran    []string
	parked []*guard.AskError
}

// Ran returns the calls that ran.
func (d *Desk) Ran() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ran
}

func (d *Desk) note(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran = append(d.ran, call)
}

// Payment is the input of Pay.
type Payment struct {
	To     string  `json:"to"`
	Amount float64 `json:"amount"`
}

// Pay pays a person.
func (d *Desk) Pay(_ context.Context, p Payment) (string, error) {
	d.note(fmt.Sprintf("pay %s %v", p.To, p.Amount))
	return fmt.Sprintf("paid %v to %s", p.Amount, p.To), nil
}

// Mailbox is the input of ReadMail.
type Mailbox struct {
	Name string `json:"name"`
}

// ReadMail returns a mail with a secret.
func (d *Desk) ReadMail(_ context.Context, m Mailbox) (string, error) {
	d.note("read_mail " + m.Name)
	return "The key is AKIA" + "IOSFODNN7EXAMPLQ.", nil
}

// Answer asks the person about a call.
func (d *Desk) Answer(ask *guard.AskError) agent.Approval {
	if d.Approve(ask.Questions.Reason() + ": " + ask.Call.Name + " " + ask.Call.Arguments) {
		return agent.Approval{Verdict: agent.Approve, By: "the person at the desk"}
	}
	return agent.Approval{Verdict: agent.RejectAndContinue, By: "the person at the desk"}
}

// Park keeps a question, and returns a text for the model.
func (d *Desk) Park(ask *guard.AskError) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parked = append(d.parked, ask)
	return "not executed yet: " + ask.Questions.Reason() + ": a person is asked"
}

// Parked returns the questions, and forgets them.
func (d *Desk) Parked() []*guard.AskError {
	d.mu.Lock()
	defer d.mu.Unlock()
	asks := d.parked
	d.parked = nil
	return asks
}

// JSON returns f for frameworks whose tools get the JSON text of their arguments.
func JSON[In any](f func(context.Context, In) (string, error)) func(context.Context, string) (string, error) {
	return func(ctx context.Context, arguments string) (string, error) {
		var in In
		if err := json.Unmarshal([]byte(arguments), &in); err != nil {
			return "", fmt.Errorf("read the arguments: %w", err)
		}
		return f(ctx, in)
	}
}

// Must returns v, and ends the program if there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Run is an agent: it answers the input with a model of the chat completions service at url.
type Run func(ctx context.Context, d *Desk, url, input string) (string, error)

// Main runs an agent with the command line's words.
func Main(run Run) {
	url := os.Getenv("OPENAI_BASE_URL")
	if url == "" {
		url = "https://api.openai.com/v1"
	}
	d := &Desk{Approve: func(question string) bool {
		fmt.Print(question, "\nApprove? (yes/no) ")
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		return strings.TrimSpace(answer) == "yes"
	}}
	fmt.Println(Must(run(context.Background(), d, url, strings.Join(os.Args[1:], " "))))
}
