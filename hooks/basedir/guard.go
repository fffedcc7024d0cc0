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

// Options configures a guard. The zero value holds the defaults.
type Options struct {
	// Name is the hook's name. Empty means "base-dir". An agent's guards need different names.
	Name string
	// Also lists further directories into which paths may lead, such as one for temporary files.
	Also []string
	// Fields lists the names of members that hold paths, at any depth in the arguments, ignoring case. Nil means all
	// members with a path's name; see the package comment.
	Fields []string
	// Absolute rewrites relative paths to absolute ones below the directory, for tools with another working
	// directory. It requires Fields, because it must not change strings that only look like paths.
	Absolute bool
}

// Guard returns a hook at PreToolUse that denies calls with paths outside dir, which must exist. Use Hook.Matching to
// restrict it to some tools.
func Guard(dir string, o Options) (hooks.Hook, error) {
	if o.Absolute && len(o.Fields) == 0 {
		return hooks.Hook{}, errors.New("guarding a base directory: Absolute requires Fields: list the members that are paths")
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

// realDir returns a directory's path with all links resolved.
func realDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the name is empty: set the directory")
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

	dirs []string // the base directory and Options.Also; without links
}

func (g guard) ask(_ context.Context, c hooks.ToolContext) hooks.Result {
	var arguments map[string]any
	if err := c.Call().Decode(&arguments); err != nil {
		return c.Fail(err) // the failure policy decides
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
