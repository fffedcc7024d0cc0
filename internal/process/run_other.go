//go:build !unix

package process

import (
	"context"
	"fmt"
	"runtime"
)

// CheckSupport returns the reason why programs cannot run here.
func CheckSupport() error {
	return fmt.Errorf("%s has no process groups and sessions, without which commands cannot be ended: run on Unix, such as in WSL", runtime.GOOS)
}

// Run returns the error of CheckSupport.
func Run(context.Context, Command) (Result, error) { return Result{}, CheckSupport() }
