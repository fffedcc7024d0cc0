package condition

import (
	"os"
	"path"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/policy/bash"
)

// shellFunctions returns the functions that analyse a shell line. A line is analysed once per call.
func (l *Language) shellFunctions() []Function {
	part := func(name string, result *cel.Type, of func(a *analysis) ref.Val) Function {
		return Function{
			Name: name, Cost: 400,
			Overloads: []Overload{{[]*cel.Type{cel.StringType}, result}},
			Call: func(in Input, args ...ref.Val) ref.Val {
				line, _ := Text(args[0])
				return of(in.event.analyse(line, l))
			},
		}
	}
	list := func(k *kind) *cel.Type { return cel.ListType(k.typ) }
	return []Function{
		part("shell.analyse", analysisKind.typ, func(a *analysis) ref.Val { return analysisKind.objectOf(a) }),
		part("shell.clear", cel.BoolType, func(a *analysis) ref.Val { return types.Bool(a.Clear()) }),
		part("shell.commands", list(commandKind), func(a *analysis) ref.Val { return a.commands }),
		part("shell.files", list(fileKind), func(a *analysis) ref.Val { return a.files() }),
		part("shell.hosts", list(hostKind), func(a *analysis) ref.Val { return a.hosts }),
		part("shell.opaque", texts, func(a *analysis) ref.Val { return a.reasons }),
		{
			Name: "flag", Member: true, Pure: true, Cost: 4,
			Overloads: []Overload{
				{[]*cel.Type{commandKind.typ, cel.StringType}, cel.BoolType},
				{[]*cel.Type{commandKind.typ, cel.StringType, cel.StringType}, cel.BoolType},
			},
			Call: flag,
		},
		{
			Name: "reached", Member: true, Pure: true, Cost: 4,
			Overloads: []Overload{{[]*cel.Type{commandKind.typ, cel.StringType}, cel.BoolType}},
			Call: func(_ Input, args ...ref.Val) ref.Val {
				by, _ := Text(args[1])
				return types.Bool(commandIn(args[0]).Reached(bash.StepKind(by)))
			},
		},
	}
}

// flag implements c.flag("r", "recursive"). A single name with one letter is a short flag, otherwise a long one.
func flag(_ Input, args ...ref.Val) ref.Val {
	command := commandIn(args[0])
	letter, _ := Text(args[1])
	long := ""
	switch {
	case len(args) > 2:
		long, _ = Text(args[2])
	case len(letter) > 1:
		letter, long = "", letter
	}
	return types.Bool(command.Flag(letter, long))
}

// commandIn returns the command that an object holds.
func commandIn(v ref.Val) *bash.Command {
	return v.Value().(*bash.Command) //nolint:forcetypeassert // CEL calls an overload only with values of its types
}

// analysis is a line's analysis, with its lists as CEL values.
type analysis struct {
	bash.Analysis

	commands, hosts, opaque, reasons ref.Val
	files                            func() ref.Val // reads the disk
}

// shellText is a line with its working and home directories.
type shellText struct{ line, dir, home string }

const maxLines = 64 // maximum number of analyses cached for one call

// analyse returns a line's analysis, from the call's cache if possible.
func (ev *event) analyse(line string, l *Language) *analysis {
	if ev.call == nil {
		return analyse(line, l)
	}
	ev.call.mu.Lock()
	defer ev.call.mu.Unlock()
	key := shellText{line, l.workspace, l.home}
	if a := ev.call.shell[key]; a != nil {
		return a
	}
	a := analyse(line, l)
	if ev.call.shell == nil {
		ev.call.shell = map[shellText]*analysis{}
	}
	if len(ev.call.shell) < maxLines {
		ev.call.shell[key] = a
	}
	return a
}

func analyse(line string, l *Language) *analysis {
	a := &analysis{Analysis: bash.Analyse(line, bash.Options{Dir: l.workspace, Repository: l.repositoryOf(line)})}
	for i := range a.Commands {
		a.Commands[i].Dirs = l.dirsOf(a.Commands[i].Dirs)
	}
	a.commands = objectList(commandKind, a.Commands)
	a.files = sync.OnceValue(func() ref.Val { return objectList(fileKind, l.filesOf(a.Files)) })
	a.hosts = objectList(hostKind, a.Hosts)
	a.opaque = objectList(opaqueKind, a.Opaque)
	reasons := lo.Map(a.Opaque, func(o bash.Opaque, _ int) string { return string(o.Reason) })
	if a.Unparseable != nil {
		reasons = append(reasons, "unparseable")
	}
	a.reasons = stringList(lo.Uniq(reasons))
	return a
}

// repositoryOf returns the top folder of the Git repository that contains the workspace if the line asks for it.
func (l *Language) repositoryOf(line string) string {
	if !strings.Contains(line, "--show-toplevel") || !path.IsAbs(l.workspace) {
		return ""
	}
	for dir := path.Clean(l.workspace); ; dir = path.Dir(dir) {
		if _, err := os.Lstat(dir + "/.git"); err == nil {
			return dir
		}
		if dir == "/" {
			return ""
		}
	}
}

// The kinds of objects in an analysis.
var (
	analysisKind = kindOf("shell.Analysis",
		field[*analysis]{"clear", cel.BoolType, func(a *analysis) ref.Val { return types.Bool(a.Clear()) }},
		field[*analysis]{"unparseable", cel.BoolType, func(a *analysis) ref.Val { return types.Bool(a.Unparseable != nil) }},
		field[*analysis]{"open_quote", cel.BoolType, func(a *analysis) ref.Val { return types.Bool(a.OpenQuote) }},
		field[*analysis]{"commands", cel.ListType(cel.ObjectType("shell.Command")), func(a *analysis) ref.Val { return a.commands }},
		field[*analysis]{"files", cel.ListType(cel.ObjectType("shell.File")), func(a *analysis) ref.Val { return a.files() }},
		field[*analysis]{"hosts", cel.ListType(cel.ObjectType("shell.Host")), func(a *analysis) ref.Val { return a.hosts }},
		field[*analysis]{"opaque", cel.ListType(cel.ObjectType("shell.Opaque")), func(a *analysis) ref.Val { return a.opaque }},
	)
	commandKind = kindOf("shell.Command",
		field[*bash.Command]{"name", cel.StringType, func(c *bash.Command) ref.Val { return types.String(c.Name) }},
		field[*bash.Command]{"kind", cel.StringType, func(c *bash.Command) ref.Val { return types.String(c.Kind) }},
		field[*bash.Command]{"listed", cel.BoolType, func(c *bash.Command) ref.Val { return types.Bool(c.Listed) }},
		field[*bash.Command]{"sub", cel.StringType, func(c *bash.Command) ref.Val { return types.String(c.Sub) }},
		field[*bash.Command]{"words", texts, func(c *bash.Command) ref.Val { return wordList(c.Words) }},
		field[*bash.Command]{"args", texts, func(c *bash.Command) ref.Val { return wordList(c.Args) }},
		field[*bash.Command]{"operands", texts, func(c *bash.Command) ref.Val { return wordList(c.Operands()) }},
		field[*bash.Command]{"known", cel.BoolType, func(c *bash.Command) ref.Val { return types.Bool(c.Known()) }},
		field[*bash.Command]{"dirs", texts, func(c *bash.Command) ref.Val { return stringList(c.Dirs) }},
		field[*bash.Command]{"code", cel.StringType, func(c *bash.Command) ref.Val { return types.String(c.Code) }},
		field[*bash.Command]{"language", cel.StringType, func(c *bash.Command) ref.Val { return types.String(c.Language) }},
		field[*bash.Command]{"effects", texts, func(c *bash.Command) ref.Val {
			return stringList(lo.Map(c.Effects, func(e bash.Effect, _ int) string { return string(e) }))
		}},
		field[*bash.Command]{"via", texts, func(c *bash.Command) ref.Val {
			return stringList(lo.Map(c.Via, func(s bash.Step, _ int) string { return string(s.Kind) }))
		}},
	)
	fileKind = kindOf("shell.File",
		field[*file]{"path", cel.StringType, func(f *file) ref.Val { return types.String(f.Path) }},
		field[*file]{"known", cel.BoolType, func(f *file) ref.Val { return types.Bool(f.Known) }},
		field[*file]{"more", cel.BoolType, func(f *file) ref.Val { return types.Bool(f.more) }},
		field[*file]{"access", cel.StringType, func(f *file) ref.Val { return types.String(f.Access) }},
		field[*file]{"exists", cel.BoolType, func(f *file) ref.Val { return types.Bool(f.exists()) }},
		field[*file]{"command", cel.IntType, func(f *file) ref.Val { return types.Int(f.Command) }},
	)
	hostKind = kindOf("shell.Host",
		field[*bash.Host]{"name", cel.StringType, func(h *bash.Host) ref.Val { return types.String(h.Name) }},
		field[*bash.Host]{"port", cel.StringType, func(h *bash.Host) ref.Val { return types.String(h.Port) }},
		field[*bash.Host]{"variable", cel.StringType, func(h *bash.Host) ref.Val { return types.String(h.Variable) }},
		field[*bash.Host]{"command", cel.IntType, func(h *bash.Host) ref.Val { return types.Int(h.Command) }},
	)
	opaqueKind = kindOf("shell.Opaque",
		field[*bash.Opaque]{"reason", cel.StringType, func(o *bash.Opaque) ref.Val { return types.String(o.Reason) }},
		field[*bash.Opaque]{"detail", cel.StringType, func(o *bash.Opaque) ref.Val { return types.String(o.Detail) }},
		field[*bash.Opaque]{"command", cel.IntType, func(o *bash.Opaque) ref.Val { return types.Int(o.Command) }},
	)
)

func wordList(words []bash.Word) ref.Val {
	return stringList(lo.Map(words, func(w bash.Word, _ int) string { return w.String() }))
}
