package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/inputform"
)

// An InputError is returned by a tool that needs input from a person before it can answer. The call then has a
// QuestionInput. It is executed again, with the answer, when a person has accepted or declined: see Prepared.Input.
// Until then the run waits or parks, as with other questions. The call has begun and is not in doubt. The controls
// judge it again, and it keeps its arguments.
type InputError struct {
	Request InputRequest
	// State is given to the tool when the call is executed again. It is stored in the run's state and appears nowhere
	// else: not in questions, events or logs.
	State []byte
}

func (e *InputError) Error() string {
	return "it needs input from a person: " + e.Request.quote()
}

// InputRequest describes the input that a tool asks a person for.
type InputRequest struct {
	// By names who asks, such as `mcp server "tracker"`.
	By string `json:"by"`
	// Message says what input the tool needs. It comes from outside: show it as such.
	Message string `json:"message"`
	// Schema is the JSON Schema of the answer: an object whose members are strings, numbers, booleans and choices, as
	// in MCP's elicitation. If it is empty, the person only accepts or declines.
	Schema string `json:"schema,omitempty"`
	// URL is an address that the person is asked to visit. Programs show it as text and do not open it.
	URL string `json:"url,omitempty"`
	// Number counts the call's requests, from one. The agent sets it.
	Number int `json:"number,omitempty"`
}

// GivenInput is a person's answer to an InputRequest.
type GivenInput struct {
	Request InputRequest `json:"request"`
	// Accepted is false if the person declined.
	Accepted bool `json:"accepted,omitempty"`
	// Content is the person's input: a JSON object that fits the schema. It is empty when the person declined or the
	// request has no schema.
	Content string `json:"content,omitempty"`
}

// The limits on an InputError, and on the number of requests that a call makes.
const (
	maxInputs       = 16
	maxInputMessage = 8 << 10
	maxInputBy      = 200
	maxInputURL     = 4 << 10
	maxInputState   = 256 << 10
)

// check returns an error when a tool must not ask for this input. N is the number of the call's earlier requests.
func (e *InputError) check(n int) error {
	r := e.Request
	switch {
	case n >= maxInputs:
		return fmt.Errorf("it has asked for input %d times", n)
	case len(r.Message) > maxInputMessage:
		return fmt.Errorf("it asks for input with a message of %d bytes: at most %d are allowed", len(r.Message), maxInputMessage)
	case len(r.URL) > maxInputURL || r.URL != inputform.OneLine(r.URL):
		return errors.New("it asks for input with a URL that is too long or has invisible characters")
	case len(e.State) > maxInputState:
		return fmt.Errorf("its state has %d bytes: at most %d are stored", len(e.State), maxInputState)
	case r.Schema == "":
		return nil
	}
	if _, err := inputform.Parse(r.Schema); err != nil {
		return fmt.Errorf("it asks for input that cannot be shown: %w", err)
	}
	return nil
}

// clean returns the request with its texts as people see them.
func (r InputRequest) clean() InputRequest {
	r.By = inputform.Clean(inputform.OneLine(r.By), maxInputBy)
	r.Message = strings.TrimSpace(inputform.Clean(r.Message, maxInputMessage))
	return r
}

// quote returns the quoted message and the name of the asker.
func (r InputRequest) quote() string {
	r = r.clean()
	text := fmt.Sprintf("%s asks: %q", r.By, r.Message)
	if r.URL != "" {
		text += fmt.Sprintf(", at the address %q", r.URL)
	}
	return text
}

// checkContent returns an *ArgumentsError when content does not answer the request. Empty content is an empty object.
func (r InputRequest) checkContent(content string) error {
	if r.Schema == "" {
		if content != "" && content != "{}" {
			return &ArgumentsError{Problems: []ArgumentProblem{{Message: "no input is asked for: accept or decline"}}}
		}
		return nil
	}
	form, err := inputform.Parse(r.Schema)
	if err != nil {
		return err
	}
	problems := lo.Map(form.Check(content), func(p inputform.Problem, _ int) ArgumentProblem {
		path := ""
		if p.Field != "" {
			path = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p.Field)
		}
		return ArgumentProblem{Path: path, Message: p.Text}
	})
	if len(problems) > 0 {
		return &ArgumentsError{Problems: problems}
	}
	return nil
}

// question returns the question that asks a person for the input.
func (r InputRequest) question() Question {
	r = r.clean()
	return Question{Kind: QuestionInput, By: r.By, Reason: r.quote(), Input: &r, OnTimeout: RejectAndContinue}
}

// newGiven returns the answer as the tool receives it.
func (r InputRequest) newGiven(a *Approval) GivenInput {
	g := GivenInput{Request: r, Accepted: a.Verdict == Approve}
	if g.Accepted && r.Schema != "" {
		g.Content = a.Input
		if g.Content == "" {
			g.Content = "{}"
		}
	}
	return g
}

// callInput is a call's input. It is never written.
type callInput struct {
	state []byte
	given []GivenInput
	// open is true from the request until the call is executed again.
	open bool
}

// Input returns people's answers to the call's requests for input so far, in order. State is from the call's last
// InputError.
func (p *Prepared) Input() (given []GivenInput, state []byte) {
	if in := p.approvalData().input; in != nil {
		return in.given, in.state
	}
	return nil, nil
}

// awaitsInput reports whether the call has asked for input and was not executed since.
func (c *openCall) awaitsInput() bool { return c != nil && c.input != nil && c.input.open }

// requests returns the requests for input among the questions about the call.
func (c *openCall) requests() Questions {
	if c.asked == nil || c.asked.used {
		return nil
	}
	return c.asked.Questions.ofKind(QuestionInput)
}

func (q Questions) ofKind(kind QuestionKind) Questions {
	return lo.Filter(q, func(one Question, _ int) bool { return one.Kind == kind })
}

func (q Questions) withoutKind(kind QuestionKind) Questions {
	return lo.Reject(q, func(one Question, _ int) bool { return one.Kind == kind })
}

// Asked returns the open request for input. Ok is false if there is none.
func (q Questions) Asked() (r InputRequest, ok bool) {
	one, ok := lo.Find(q, func(one Question) bool { return one.Kind == QuestionInput && one.Decision() == nil })
	if !ok {
		return InputRequest{}, false
	}
	return *one.Input, true
}

// CheckInput returns an error when an answer's input cannot count, because the call asks for none or the input does not
// fit. Input that does not fit is an *ArgumentsError.
func (i Intervention) CheckInput(a Approval) error {
	r, ok := i.Questions.Asked()
	switch {
	case a.Input != "" && a.Verdict != Approve:
		return errors.New("input is allowed only with an approval")
	case !ok && a.Input != "":
		return errors.New("the call asks for no input")
	case !ok || a.Verdict != Approve:
		return nil
	}
	return r.checkContent(a.Input)
}
