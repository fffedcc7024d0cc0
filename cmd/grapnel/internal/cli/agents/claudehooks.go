package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnel-go/grapnel/action/claudehooks"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

// claudeSettings are the settings files of --claude-hooks.
type claudeSettings struct {
	files  []string
	compat bool
	read   func(path string) ([]byte, error)
}

// openClaudeHooks loads the hooks of Claude Code for the agent; nil without any. Closing the agent closes them.
func (m *Built) openClaudeHooks(w Watchers) (*claudehooks.Set, error) {
	c := w.Rules.claude
	if len(c.files) == 0 {
		return nil, nil
	}
	o := claudehooks.Options{Dir: w.Dir, Compat: c.compat, Trusted: isApproved, Read: c.read}
	if w.Note != nil {
		o.Notify = func(n claudehooks.Notice) { w.Note(n.String()) }
	}
	set, err := claudehooks.Load(c.files, o)
	if untrusted, ok := errors.AsType[*claudehooks.UntrustedError](err); ok {
		return nil, console.Usagef("--claude-hooks %s: not approved: read it and the scripts that it names, then run: grapnel hooks approve %s",
			untrusted.File, console.ShellWord(untrusted.File))
	}
	if err != nil {
		return nil, fmt.Errorf("--claude-hooks: %w", err)
	}
	for _, warning := range set.Warnings() {
		m.Notes = append(m.Notes, warning.String())
	}
	m.Notes = append(m.Notes, fmt.Sprintf("Hooks of Claude Code: %s.", set))
	closeOthers := m.Close
	m.Close = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
		defer cancel()
		return errors.Join(closeOthers(), set.Close(ctx))
	}
	return set, nil
}

// approvals returns the file with the digests of approved settings; empty when its folder is unknown.
func approvals() string {
	global := GlobalPolicy()
	if global == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(global), "claude-hooks.approved")
}

// isApproved reports whether the user has approved a settings file with its scripts.
func isApproved(_, digest string) bool {
	text, err := os.ReadFile(approvals())
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if approved, _, _ := strings.Cut(line, " "); approved == digest {
			return true
		}
	}
	return false
}

// ApproveClaudeHooks records the digests of settings files with their scripts, and returns what it recorded.
func ApproveClaudeHooks(files []string) (lines []string, err error) {
	set, err := claudehooks.Load(files, claudehooks.Options{Trusted: func(file, digest string) bool {
		lines = append(lines, digest+" "+file)
		return true
	}})
	if err != nil {
		return nil, console.Usage(err)
	}
	if err := set.Close(context.Background()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(approvals()), 0o700); err != nil {
		return nil, fmt.Errorf("approving hooks: %w", err)
	}
	f, err := os.OpenFile(approvals(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("approving hooks: %w", err)
	}
	_, err = f.WriteString(strings.Join(append(lines, ""), "\n"))
	if closing := f.Close(); err == nil {
		err = closing
	}
	return lines, err
}
