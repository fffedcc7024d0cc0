//go:build !linux

package shell

import (
	"path/filepath"

	"github.com/grapnel-go/grapnel/internal/process"
)

// command returns the process that runs text with the shell.
func (s *Shell) command(text string) process.Command {
	return process.Command{Args: []string{s.config.Shell, "-c", "--", text, filepath.Base(s.config.Shell)}}
}
