package judge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Options configures a judge.
type Options struct {
	// Name is the prefix of the hooks' names. Empty means "judge".
	Name string
	// Driver calls the model that judges. Required.
	Driver agent.Driver
	// Model is the model's name at its provider. Empty means the driver's default.
	Model string
	// Rule tells the model what is allowed and what is not. Required.
	Rule string
	// Input shows the judge the user's last message.
	Input bool
	// Transcript is the number of last messages shown to the judge. Negative means all.
	Transcript int
	// MaxBytes limits the JSON that shows the run to the judge. Zero means 64 KiB.
	MaxBytes int
	// Timeout limits each judgement. Zero means 30 seconds.
	Timeout time.Duration
	// Failure is the policy when the judge fails. Zero means hooks.Closed.
	Failure hooks.FailurePolicy
	// Told, unless nil, is called with each judgement. It must be quick and safe for concurrent use.
	Told func(ctx context.Context, j Judgement)
}

// Judgement is a judge's decision, or its failure.
type Judgement struct {
	Run agent.Run
	// Point is the point at which the judge was called. Tool and CallID identify the tool call. Both are empty for an
	// answer.
	Point  hooks.PointName
	Tool   string
	CallID string
	// Allowed is the decision, and Reason its explanation.
	Allowed bool
	Reason  string
	// Usage is the model call's usage, and Duration its duration.
	Usage    agent.Usage
	Duration time.Duration
	// Err is the error when there is no verdict.
	Err error
}

// A Judge asks a model for decisions. Create one with New.
type Judge struct {
	options Options
	request agent.Request

	mu    sync.Mutex
	usage agent.Usage
}

// New returns a judge, or an error that joins all problems of the options.
func New(o Options) (*Judge, error) {
	var wrong []error
	if o.Driver == nil {
		wrong = append(wrong, errors.New("no driver: set Driver to the model that judges"))
	}
	if o.Rule == "" {
		wrong = append(wrong, errors.New("no rule: set Rule to what is allowed and what is not"))
	}
	if o.Timeout < 0 || o.MaxBytes < 0 {
		wrong = append(wrong, errors.New("negative limit: Timeout and MaxBytes must be 0 or more"))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("creating a judge: %w", err)
	}
	o.Name, o.Timeout, o.MaxBytes = cmp.Or(o.Name, "judge"), cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.MaxBytes, 64<<10)
	return &Judge{
		options: o,
		request: agent.Request{
			Model: o.Model, Instructions: judgePrompt(o.Rule),
			Output: &agent.Output{Name: "verdict", Schema: schema},
		},
		usage: agent.Usage{Cost: mo.Some(0.0)},
	}, nil
}

// Usage returns the usage of all judgements so far. The cost is unknown if any judgement's cost is unknown.
func (j *Judge) Usage() agent.Usage {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.usage
}

// Calls returns the hook that judges calls before they run.
func (j *Judge) Calls(matching ...hooks.Matcher) hooks.Hook {
	return j.limit(hooks.On(hooks.AtPreToolUse, j.options.Name, func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		if c.Invalid() != nil {
			return c.Pass() // the call does not run
		}
		call := c.Call()
		verdict, err := j.judge(ctx, c, call.ToolCall, j.showRun(c.State()).call(call))
		switch {
		case err != nil:
			return c.Fail(err)
		case verdict.denied():
			return c.Deny(verdict.Reason)
		}
		return c.Allow()
	}, matching...).WithPriority(hooks.PriorityAfterwork))
}

// Results returns the hook that judges tool results. Its name ends in ".results".
func (j *Judge) Results(matching ...hooks.Matcher) hooks.Hook {
	return j.limit(hooks.On(hooks.AtPostToolUse, j.options.Name+".results", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
		if c.Status() == agent.ToolNotExecuted || c.Status() == agent.ToolUnknown {
			return c.Pass()
		}
		verdict, err := j.judge(ctx, c, c.Call().ToolCall, j.showRun(c.State()).call(c.Call()).result(c.Result()))
		switch {
		case err != nil:
			return c.Fail(err)
		case verdict.denied():
			return c.Withhold(verdict.Reason)
		}
		return c.Allow()
	}, matching...).WithPriority(hooks.PriorityGuard + 1)) // after the guards, because higher priorities run later at this point
}

// Answers returns the hook that judges the answer with which a run would end. Its name ends in ".answers".
func (j *Judge) Answers() hooks.Hook {
	return j.limit(hooks.On(hooks.AtStop, j.options.Name+".answers", func(ctx context.Context, c hooks.StopContext) hooks.Result {
		verdict, err := j.judge(ctx, c, agent.ToolCall{}, j.showRun(c.State()).answer(c.State(), c.Answer()))
		switch {
		case err != nil:
			return c.Fail(err)
		case !verdict.denied():
			return c.Allow()
		case c.ContinuationsLeft() == 0:
			return c.Stop(verdict.Reason)
		}
		return c.Continue(verdict.Reason)
	}))
}

// Verdict is a judge's decision with its reason.
type Verdict struct {
	Allowed bool
	Reason  string
}

// Decide judges a JSON value by the rule, for callers that are not hooks, such as declared hooks' actions. The judge
// sees the value as data, like everything else. Options.Told is not called.
func (j *Judge) Decide(ctx context.Context, about json.RawMessage) (Verdict, error) {
	v, _, err := j.ask(ctx, shown{About: about})
	if err != nil {
		return Verdict{}, fmt.Errorf("judging: %w", err)
	}
	return Verdict{Allowed: !v.denied(), Reason: v.Reason}, nil
}

func (j *Judge) limit(h hooks.Hook) hooks.Hook {
	return h.WithTimeout(j.options.Timeout).WithFailure(j.options.Failure)
}

// judge asks the model and reports the judgement.
func (j *Judge) judge(ctx context.Context, c hooks.Context, call agent.ToolCall, about shown) (verdict, error) {
	began := time.Now()
	verdict, usage, err := j.ask(ctx, about)
	if err != nil {
		err = fmt.Errorf("judging: %w", err)
	}
	if j.options.Told != nil {
		j.options.Told(ctx, Judgement{
			Run: c.Run(), Point: c.Point(), Tool: call.Name, CallID: call.ID,
			Allowed: err == nil && !verdict.denied(), Reason: verdict.Reason, Usage: usage, Duration: time.Since(began), Err: err,
		})
	}
	return verdict, err
}

func (j *Judge) ask(ctx context.Context, about shown) (verdict, agent.Usage, error) {
	nothing := agent.Usage{Cost: mo.Some(0.0)}
	question, err := about.question(j.options.MaxBytes)
	if err != nil {
		return verdict{}, nothing, err
	}
	step, err := j.options.Driver.Next(ctx, agent.NewState(agent.UserText(question)).WithRequest(j.request)).Get()
	if err != nil {
		return verdict{}, nothing, err
	}
	j.mu.Lock()
	j.usage = j.usage.Add(step.Usage)
	j.mu.Unlock()
	v, err := verdictOf(step)
	return v, step.Usage, err
}
