//go:build !unix

package shell

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const killing = 2 * time.Second

func supported() error {
	return fmt.Errorf("%s has no process groups and sessions, without which commands cannot be ended: run on Unix, such as in WSL", runtime.GOOS)
}

func (s *Shell) run(context.Context, Command) (Result, error) { return Result{}, supported() }
