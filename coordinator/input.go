package coordinator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/pipeline"
)

// parametersKey holds the parameters of a run of an agent, in the state that the run begins with.
var parametersKey = agent.RunKey[json.RawMessage]("coordinator.parameters")

// inputOf returns the input of a run with parameters. A command gets them as they are. An agent gets the text of the
// parameter "prompt", if there is no other one, and otherwise the parameters as JSON.
func inputOf(kind durable.Kind, name string, params json.RawMessage) ([]byte, error) {
	text, err := strictjson.Compact(string(params))
	if err != nil {
		return nil, err
	}
	if kind == durable.KindCommand {
		j, err := command.Job(name, json.RawMessage(text))
		return j.Input, err
	}
	prompt := text
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	if own, ok := all["prompt"]; ok && len(all) == 1 {
		if text, isText := strictjson.Unquote(string(own)); isText {
			prompt = text
		}
	}
	j, err := durable.AgentJob(name, parametersKey.In(agent.NewState(), json.RawMessage(text)), agent.UserText(prompt))
	return j.Input, err
}

// parametersOf returns the parameters in the input of a run.
func parametersOf(kind durable.Kind, input []byte) (json.RawMessage, error) {
	switch kind {
	case durable.KindCommand:
		return input, nil
	case durable.KindPipeline:
		return pipeline.InputsOf(input)
	}
	s, err := agent.Restore(input)
	if err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	return parametersKey.Or(s, json.RawMessage("{}")), nil
}

// changedInput returns the input of a run with other parameters.
func (c *Coordinator) changedInput(ctx context.Context, r durable.Run, params json.RawMessage) ([]byte, error) {
	if r.Kind != durable.KindPipeline {
		return inputOf(r.Kind, r.Name, params)
	}
	input, err := c.store.SubmittedInput(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return pipeline.WithInputs(input, params)
}

// newSessionID returns a random ID.
func newSessionID(prefix string) agent.SessionID {
	return agent.SessionID(prefix + strings.ToLower(rand.Text()))
}

func versionText(version int64) string { return strconv.FormatInt(version, 10) }

// versionOf returns the version of the blueprint of a run.
func versionOf(r durable.Run) (int64, error) {
	version, err := strconv.ParseInt(r.Version, 10, 64)
	if err != nil || version < 1 {
		return 0, fmt.Errorf("run %s: %q is not a version of a blueprint: was it submitted through a coordinator?", r.ID, r.Version)
	}
	return version, nil
}

// blueprintOf returns the blueprint of a run, in the version that the run has.
func (c *Coordinator) blueprintOf(ctx context.Context, r durable.Run) (wire.Stored, error) {
	version, err := versionOf(r)
	if err != nil {
		return wire.Stored{}, err
	}
	return c.Blueprint(ctx, r.Name, version)
}

// hashKey returns an idempotency key for what belongs to something with another key.
func hashKey(what, key string) string {
	sum := sha256.Sum256([]byte(what + "\x00" + key))
	return what + " " + hex.EncodeToString(sum[:])
}
