package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/worker"
)

// Program is the path of a program built with package worker.
type Program string

// Contenders asks the program for its contenders. Each of their measurements runs in its own process, so that
// contenders do not share memory, goroutines or globals.
func (p Program) Contenders(ctx context.Context) ([]Contender, error) {
	var who []worker.About
	if err := p.ask(ctx, &who); err != nil {
		return nil, err
	}
	all := make([]Contender, len(who))
	for i, about := range who {
		all[i] = Contender{
			About: about,
			Measure: func(ctx context.Context, job bench.Job, atLeast time.Duration) (sample bench.Sample, err error) {
				err = p.measure(ctx, &sample, about.Name, job, "-time", atLeast.String())
				return sample, err
			},
			Blocked: func(ctx context.Context, job bench.Job, runs int) (held bench.Held, err error) {
				err = p.measure(ctx, &held, about.Name, job, "-blocked", strconv.Itoa(runs))
				return held, err
			},
		}
	}
	return all, nil
}

func (p Program) measure(ctx context.Context, into any, name string, job bench.Job, args ...string) error {
	text, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("write job: %w", err)
	}
	return p.ask(ctx, into, append([]string{"-contender", name, "-job", string(text)}, args...)...)
}

func (p Program) ask(ctx context.Context, into any, args ...string) error {
	var out, complaints bytes.Buffer
	c := exec.CommandContext(ctx, string(p), args...) //nolint:gosec // a program that the developer built
	c.Stdout, c.Stderr = &out, &complaints
	if err := c.Run(); err != nil {
		return fmt.Errorf("run %s %s: %w: %s", p, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("read the output of %s %s: %w", p, strings.Join(args, " "), err)
	}
	return nil
}
