package agenttest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestScriptIsAModel(t *testing.T) {
	agenttest.TestModel(t, agenttest.Model{New: scripted})
}

// scripted plays a model's turns.
func scripted(_ *testing.T, turns ...agent.Step) agent.Driver {
	return agenttest.Script(lo.Map(turns, func(turn agent.Step, _ int) agenttest.Turn { return agenttest.Reply(turn) })...)
}

// altering is a scripted model that changes the replies from both Next and Stream, or only from Stream.
type altering struct {
	agent.Streamer
	step       func(agent.Step) agent.Step
	streamOnly bool
	features   agent.Features
}

func (d altering) Features() agent.Features { return d.features }

func (d altering) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	r := d.Streamer.Next(ctx, s)
	if d.streamOnly {
		return r
	}
	return r.MapValue(d.step)
}

func (d altering) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.Streamer.Stream(ctx, s, emit).MapValue(d.step)
}

func calls(m agent.Message, f func(c agent.ToolCall) agent.ToolCall) agent.Message {
	if m.CallCount() == 0 {
		return m
	}
	var out []agent.ToolCall
	for _, c := range m.Calls() {
		out = append(out, f(c))
	}
	return m.WithCalls(out...)
}

func altered(f func(agent.Step) agent.Step) func(agent.Streamer) agent.Driver {
	return func(d agent.Streamer) agent.Driver { return altering{Streamer: d, step: f} }
}

func alteredStream(f func(agent.Step) agent.Step) func(agent.Streamer) agent.Driver {
	return func(d agent.Streamer) agent.Driver { return altering{Streamer: d, step: f, streamOnly: true} }
}

// brokenModels lists drivers with a fault, the part of TestModel that finds it, and the
// expected message.
var brokenModels = map[string]struct {
	make func(d agent.Streamer) agent.Driver
	part string
	says string
}{
	"leaves the last call out": {altered(func(s agent.Step) agent.Step {
		if n := s.Message.CallCount(); n > 1 {
			var kept []agent.ToolCall
			for i, c := range s.Message.Calls() {
				if i < n-1 {
					kept = append(kept, c)
				}
			}
			s.Message = s.Message.WithCalls(kept...)
		}
		return s
	}), "parallel", "the answers to calls of one reply"},
	"gives calls of one reply one id": {altered(func(s agent.Step) agent.Step {
		s.Message = calls(s.Message, func(c agent.ToolCall) agent.ToolCall { c.ID = "same"; return c })
		return s
	}), "contract", "as another call has"},
	"mends arguments": {altered(func(s agent.Step) agent.Step {
		s.Message = calls(s.Message, func(c agent.ToolCall) agent.ToolCall {
			if !strings.HasSuffix(c.Arguments, "}") {
				c.Arguments = "{}"
			}
			return c
		})
		return s
	}), "malformed", "the arguments as the model wrote them"},
	"loses what is not ASCII": {altered(func(s agent.Step) agent.Step {
		text := strings.Map(func(r rune) rune { return lo.Ternary(r < 0x80, r, '?') }, s.Message.Text())
		s.Message = s.Message.WithContent(agent.TextContent(text))
		return s
	}), "ASCII", "the text beside the call"},
	"cuts what is long": {altered(func(s agent.Step) agent.Step {
		text := s.Message.Text()
		s.Message = s.Message.WithContent(agent.TextContent(text[:min(len(text), 1<<16)]))
		return s
	}), "huge", "the answer has 65536 bytes"},
	"does not count what a stream uses": {alteredStream(func(s agent.Step) agent.Step { s.Usage = agent.Usage{}; return s }), "several_turns", "input tokens of the run"},
	"forgets why a stream ended":        {alteredStream(func(s agent.Step) agent.Step { s.FinishReason = ""; return s }), "contract", "another finish reason"},
	"takes a cut answer for a whole": {altered(func(s agent.Step) agent.Step {
		if s.FinishReason == agent.FinishLength {
			s.FinishReason = agent.FinishStop
		}
		return s
	}), "cut_answer", "finish reasons"},
	"fails at what the model wrote": {func(d agent.Streamer) agent.Driver {
		return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			step, err := d.Next(ctx, s).Get()
			for _, c := range step.Message.Calls() {
				if c.Arguments != "" && !strings.HasSuffix(c.Arguments, "}") {
					return agent.Step{}, errors.New("bad arguments")
				}
			}
			return step, err
		})
	}, "malformed", "is no failure of its service"},
	"does not look at its context": {func(d agent.Streamer) agent.Driver {
		return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			if ctx.Err() != nil {
				select {}
			}
			return d.Next(ctx, s).Get()
		})
	}, "cancelled", "the run did not return"},
	"streams in one piece": {func(d agent.Streamer) agent.Driver { return atOnce{d} }, "plain", "told of the reply in one piece"},
	"says that it streams and does not": {func(d agent.Streamer) agent.Driver {
		return blocking{d, agent.Features{Provider: "script", Streaming: true, Tools: true, ParallelCalls: true}}
	}, "features", "Features.Streaming against being an agent.Streamer"},
	"shows images that it says it cannot": {func(d agent.Streamer) agent.Driver {
		return blocking{d, agent.Features{Provider: "script", Tools: true}}
	}, "image", "the driver says that there are no images"},
	"mixes runs up": {func(d agent.Streamer) agent.Driver {
		return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			step, err := d.Next(ctx, s).Get()
			if strings.HasPrefix(s.Message(0).Text(), "question") {
				step.Message = agent.Assistant("The other end.")
			}
			return step, err
		})
	}, "several_runs_at_once", "several_runs_at_once"},
}

// atOnce emits each reply in one piece.
type atOnce struct{ agent.Driver }

func (d atOnce) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return agent.Stream(ctx, blocking{d.Driver, agent.Features{}}, s, emit)
}

// blocking is a driver that does not stream.
type blocking struct {
	driver   agent.Driver
	features agent.Features
}

func (d blocking) Features() agent.Features { return d.features }

func (d blocking) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.driver.Next(ctx, s)
}

const brokenModel = "AGENTTEST_BROKEN_MODEL"

func TestModelFindsWhatIsBroken(t *testing.T) {
	for name, model := range brokenModels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenModel$/"+model.part, "-test.timeout=60s")
			cmd.Env = append(os.Environ(), brokenModel+"="+name)
			out, err := cmd.CombinedOutput()
			assert.Error(t, err, "the test passed")
			assert.Contains(t, string(out), model.says)
			assert.NotContains(t, string(out), "\ngoroutine ", "the test panicked")
		})
	}
}

func TestBrokenModel(t *testing.T) {
	name := os.Getenv(brokenModel)
	if name == "" {
		t.Skip("this is run by TestModelFindsWhatIsBroken")
	}
	if brokenModels[name].part == "cancelled" {
		agenttest.SetPatience(time.Second / 4)
	}
	agenttest.TestModel(t, agenttest.Model{New: func(t *testing.T, turns ...agent.Step) agent.Driver {
		return brokenModels[name].make(scripted(t, turns...).(agent.Streamer))
	}})
}

func TestModelWithoutWhatADriverCannotDo(t *testing.T) {
	agenttest.TestModel(t, agenttest.Model{ObjectArguments: true, New: func(t *testing.T, turns ...agent.Step) agent.Driver {
		return blocking{scripted(t, turns...), agent.Features{Provider: "script", Tools: true, Images: true}}
	}})
}
