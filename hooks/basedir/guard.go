package basedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// Options is what may be said about a guard. The zero value is the default.
type Options struct {
	// Name is the hook's; empty means base-dir. Give each guard of an agent its own.
	Name string
	// Also is further directories that paths may lead to, such as one for temporary files.
	Also []string
	// Fields is the names of the members that are paths, in any case, wherever they are in the arguments. Nil means those
	// that are called like one; see the package comment.
	Fields []string
	// Absolute rewrites relative paths to absolute ones below the directory, for tools that work elsewhere. It needs
	// Fields, since it must not touch what only looks like a path.
	Absolute bool
}

// Guard returns a hook at PreToolUse that denies calls with paths outside of dir, which must exist. Narrow it to some tools
// with Hook.Matching.
func Guard(dir string, o Options) (hooks.Hook, error) {
	if o.Absolute && len(o.Fields) == 0 {
		return hooks.Hook{}, errors.New("guarding a base directory: Absolute needs Fields: say which members are paths")
	}
	g := guard{Options: o}
	for _, dir := range append([]string{dir}, o.Also...) {
		actual, err := realDir(dir)
		if err != nil {
			return hooks.Hook{}, fmt.Errorf("guarding base directory %q: %w", dir, err)
		}
		g.dirs = append(g.dirs, actual)
	}
	name := lo.CoalesceOrEmpty(o.Name, "base-dir")
	return hooks.On(hooks.AtPreToolUse, name, g.ask).WithPriority(hooks.PriorityGuard), nil
}

// realDir returns a directory without links.
func realDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the name is empty: say which directory")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	actual, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(actual); err != nil || !info.IsDir() {
		return "", lo.Ternary(err != nil, err, errors.New("it is not a directory"))
	}
	return actual, nil
}

type guard struct {
	Options

	dirs []string // the base directory, and those that are allowed besides; without links
}

func (g guard) ask(_ context.Context, c hooks.ToolContext) hooks.Result {
	var arguments map[string]any
	if err := c.Call().Decode(&arguments); err != nil {
		return c.Fail(err) // the failure policy decides: a control that cannot tell says no
	}
	changed, reason := false, ""
	after := g.visit("", arguments, false, func(at, path string, name bool) string {
		if problem := g.judge(path); problem != "" {
			reason = lo.CoalesceOrEmpty(reason, fmt.Sprintf("argument %q: the path %q %s", short(at), short(path), problem))
			return path
		}
		if name || !g.Absolute || filepath.IsAbs(path) || isURL(path) {
			return path
		}
		changed = true
		return filepath.Join(g.dirs[0], path)
	})
	switch {
	case reason != "":
		return c.Deny(reason)
	case changed:
		return c.Rewrite(after)
	}
	return c.Allow()
}

// short returns the beginning of a long text.
func short(text string) string {
	return lo.Ternary(len(text) > 200, lo.Substring(text, 0, 200)+"…", text)
}
