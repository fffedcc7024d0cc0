// Command quickstart shows what hooks do to an agent. It plays a recorded session, an agent that mends a failing test,
// through a real agent with five hooks. They let it work, deny what it must not touch, and rewrite a push that would
// overwrite other people's commits. They do not let it stop before the tests pass. It needs no model, key or network.
//
//	go run ./examples/quickstart
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
)

//go:embed session.jsonl
var recording []byte

//go:embed tools.json
var toolSchemas []byte

func main() {
	if err := run(context.Background(), os.Stdout, wantsColour(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, colour bool) error {
	session, tools, err := load()
	if err != nil {
		return err
	}
	show := newTimeline(out, colour)
	a, err := builder.New().
		WithName("mender").
		WithDriver(replay.Driver{}). // the recorded model; a real one goes here
		With(
			capability.UseTools(replay.Tools(tools...)...),
			capability.UseHooks(baseDir, noWipe, noForcePush, testsFirst, countCalls(show)),
			capability.UseGuards{Steps: 20},
		).
		WithObserver(show).
		Build().Get()
	if err != nil {
		return err
	}
	show.title("A recorded session, played through a real agent with five hooks.")
	played, err := session.Play(ctx, a)
	if err != nil {
		return err
	}
	show.summary(played)
	return nil
}

// load reads the session and the tools that ship with the program.
func load() (*replay.Session, []replay.ToolSchema, error) {
	var tools []replay.ToolSchema
	if err := json.Unmarshal(toolSchemas, &tools); err != nil {
		return nil, nil, fmt.Errorf("tools.json: %w", err)
	}
	for record, err := range replay.NewReader(bytes.NewReader(recording)).Records() {
		if err != nil {
			return nil, nil, fmt.Errorf("session.jsonl: %w", err)
		}
		session, err := replay.NewSession(record)
		return session, tools, err
	}
	return nil, nil, errors.New("session.jsonl: no run in the file")
}

var _ agent.Observer = (*timeline)(nil)
