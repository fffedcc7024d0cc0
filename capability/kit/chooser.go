package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/internal/startedrun"
	"github.com/grapnel-go/grapnel/toolexec"
)

// chooser asks a model to select tools. It is a separate agent that gives one answer.
type chooser struct {
	agent   *agent.Agent
	decoder *toolexec.Decoder[chosenTools]
	most    int
}

type chosenTools struct {
	Tools []string `json:"tools"`
}

const chooserInstructions = "You select tools for an assistant. You are shown what the user wants, and all tools. Name the tools that " +
	"the assistant is likely to need for it, the most important first, and none besides. You do not do the work, and you do not call tools."

// chooserSteps is more than the number of steps that a model needs if it answers as instructed.
const chooserSteps = 3

func newChooser(d agent.Driver, instructions string, most int) (*chooser, error) {
	decoder, err := toolexec.NewDecoder[chosenTools]()
	if err != nil {
		return nil, err
	}
	a, err := agent.New(agent.Config{
		Name: ToolSelection{}.Name(), Driver: d,
		Request:   agent.Request{Instructions: cmp.Or(instructions, chooserInstructions)},
		Criterion: continuation.All(agent.Base, continuation.Steps(chooserSteps)),
	}).Get()
	return &chooser{a, decoder, most}, err
}

// choose asks the model, unless it has already chosen for the user's newest message.
func (m *chooser) choose(ctx context.Context, s agent.State, c *choice) ([]string, *agent.Usage, error) {
	question := m.question(s)
	if c.asked == question {
		return c.names, nil, nil
	}
	output, err := m.output(s)
	if err != nil {
		return nil, nil, err
	}
	counted := startedrun.Within(ctx, nil) // its usage counts with the reply
	final, err := m.agent.RunWith(counted, agent.RunSettings{Parent: s.Run(), Output: output}, agent.NewState(), agent.UserText(question)).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	used := final.RunUsage()
	if err == nil && final.Status() != agent.StatusDone {
		err = fmt.Errorf("no answer: %s", final.StopSignal().Reason)
	}
	if err != nil {
		return nil, &used, err
	}
	var chosen chosenTools
	if err := m.decoder.Decode(final.Answer(), &chosen); err != nil {
		return nil, &used, err
	}
	c.asked, c.names = question, chosen.Tools
	return chosen.Tools, &used, nil
}

// question returns the question for the model.
func (m *chooser) question(s agent.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The user wants:\n\n%s\n\nThe tools:\n\n", wish(s))
	for _, spec := range specsOf(s) {
		fmt.Fprintf(&b, "- %s: %s\n", spec.Name, strings.Join(strings.Fields(spec.Description), " "))
	}
	if m.most > 0 {
		fmt.Fprintf(&b, "\nName %d at most.", m.most)
	}
	return b.String()
}

// wish returns the user's newest message.
func wish(s agent.State) string {
	for _, message := range s.MessagesBackward() {
		if message.Role() == agent.RoleUser && message.Source() == "" {
			return message.Text()
		}
	}
	return "nothing was said"
}

// output returns the required form of the answer.
func (m *chooser) output(s agent.State) (*agent.Output, error) {
	names := lo.Map(specsOf(s), func(spec agent.ToolSpec, _ int) string { return spec.Name })
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return &agent.Output{
		Name: "tools", Attempts: chooserSteps - 1,
		Schema: `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string","enum":` + string(list) +
			`}}},"required":["tools"],"additionalProperties":false}`,
		Check: func(answer string) error {
			var chosen chosenTools
			if err := m.decoder.Decode(answer, &chosen); err != nil {
				return err
			}
			if unknown := lo.Without(chosen.Tools, names...); len(unknown) > 0 {
				return fmt.Errorf("unknown tool %q", unknown[0])
			}
			return nil
		},
	}, nil
}
