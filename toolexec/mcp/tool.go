package mcp

import (
	"errors"
	"fmt"

	"github.com/samber/lo"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Annotations are a server's hints about a tool, which may be false. Fields that a server omits have the protocol's
// default.
type Annotations struct {
	// Title is a name for people.
	Title string
	// ReadOnly: the tool changes nothing.
	ReadOnly bool
	// Destructive: the tool may destroy or overwrite something. Only meaningful for a tool that is not ReadOnly.
	Destructive bool
	// Idempotent: repeating the same call changes nothing more.
	Idempotent bool
	// OpenWorld: the tool interacts with the world outside of the server.
	OpenWorld bool
}

func annotationsOf(t *sdk.Tool) Annotations {
	a := lo.FromPtr(t.Annotations)
	return Annotations{
		Title: lo.CoalesceOrEmpty(t.Title, a.Title), ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint,
		Destructive: a.DestructiveHint == nil || *a.DestructiveHint,
		OpenWorld:   a.OpenWorldHint == nil || *a.OpenWorldHint,
	}
}

// purposeOf returns the tool's effects according to annotations.
func purposeOf(a Annotations) *agent.Purpose {
	p := &agent.Purpose{Hint: true, Effects: []string{"writes"}}
	if a.ReadOnly {
		p.Effects = []string{"reads"}
	}
	return p
}

// tool is a server's tool.
type tool struct {
	client      *Client
	name        string // the server's own name
	spec        agent.ToolSpec
	input       *toolexec.Schema
	output      *toolexec.Schema // nil when the server gives none, or one that cannot be compiled
	definition  definition
	annotations Annotations
	policy      toolexec.Policy
}

var _ toolexec.Tool = (*tool)(nil)

// toolsOf returns a list's selected tools, or an error that joins their problems.
func (c *Client) toolsOf(listed []*sdk.Tool) ([]*tool, error) {
	kept, err := pickTools(c.server, listed)
	if err != nil {
		return nil, err
	}
	names := toolNames(c.server.Name, lo.Map(kept, func(t *sdk.Tool, _ int) string { return t.Name }))
	var wrong []error
	tools := lo.Map(kept, func(t *sdk.Tool, i int) *tool {
		made, err := c.toolOf(t, names[i])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("tool %q: its schema: %w; list it in Except to omit it", shortenText(t.Name), err))
		}
		return made
	})
	return tools, errors.Join(wrong...)
}

func (c *Client) toolOf(t *sdk.Tool, name string) (*tool, error) {
	told, checked, err := inputSchema(t.InputSchema)
	if err != nil {
		return nil, err
	}
	made := &tool{
		client: c, name: t.Name, input: checked, definition: definitionOf(t), annotations: annotationsOf(t),
		spec:   agent.ToolSpec{Name: name, Description: lo.CoalesceOrEmpty(t.Description, t.Title), Parameters: told, External: true},
		policy: c.server.Policy,
	}
	if t.Annotations != nil {
		made.spec.Purpose = purposeOf(made.annotations)
	}
	if t.OutputSchema != nil {
		made.output, _ = toolexec.CompileSchema(jsonOf(t.OutputSchema))
	}
	if made.policy.Retry.Attempts == 0 && (made.annotations.ReadOnly || made.annotations.Idempotent) {
		made.policy.Retry = toolexec.Retry{Attempts: 2, If: wasLost}
	}
	if made.policy.Doubt == 0 && (made.annotations.ReadOnly || made.annotations.Idempotent) {
		made.policy.Doubt = toolexec.DoubtRepeat
	}
	return made, nil
}

// Spec returns the server's description of the tool.
func (t *tool) Spec() agent.ToolSpec { return t.spec }

// Policy returns the tool's default policy.
func (t *tool) Policy() toolexec.Policy { return t.policy }

// Err returns nil, because a tool with an error is not listed. The method tells toolexec that the parameters were
// checked.
func (t *tool) Err() error { return nil }

// Prepare checks the arguments against the supported part of the schema. The server checks them again.
func (t *tool) Prepare(args string) (toolexec.Body, error) {
	if err := t.input.Validate(args); err != nil {
		return nil, err
	}
	return &call{tool: t, arguments: args}, nil
}

// wasLost reports whether a call failed because its answer was lost.
func wasLost(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Lost
}
