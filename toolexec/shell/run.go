package shell

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/process"
)

// runCommand starts a command, waits until it ends or must be ended, and cleans up.
func (s *Shell) runCommand(ctx context.Context, c Command) (Result, error) {
	streams := [2]capture{{most: s.config.MaxOutputBytes}, {most: s.config.MaxOutputBytes}}
	p := s.command(c.Text)
	p.Path, p.Dir, p.Env = s.config.Shell, s.config.Dir, s.environ(ctx, c)
	p.Stdout, p.Stderr = &streams[0], &streams[1]
	p.Timeout, p.Grace, p.Most = c.Timeout, s.config.Grace, s.config.Limits.Processes
	r, err := process.Run(ctx, p)
	if err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", s.config.Shell, err)
	}
	return Result{
		Ended: Ending(r.Ended), ExitCode: r.ExitCode(), Signal: r.Signal,
		Stdout: streams[0].stream(), Stderr: streams[1].stream(),
		Duration: r.Duration, Timeout: c.Timeout, MaxProcesses: p.Most, Leftover: r.Leftover, Alive: r.Alive, Held: r.Held,
	}, nil
}
