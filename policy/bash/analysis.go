package bash

import (
	"iter"
	"slices"
	"strings"
)

// Options are what is known of the shell that will run the line. The zero value
// knows nothing.
type Options struct {
	// Dir is the working directory at the start. Empty is not known: relative
	// paths then stay relative to it.
	Dir string
	// Home is what ~ and $HOME stand for. Empty keeps the letter: "~/x".
	Home string
	// Env are variables known to be set. All others count as not known.
	Env map[string]string
}

// Analysis is what running a line of bash may do. It is a value of its own: nothing
// in it changes later.
type Analysis struct {
	// Commands are the simple commands that may run, in reading order; what is
	// inside sudo, sh -c, $(…) and the like follows what holds it. With no opaque
	// place and no syntax error, nothing else runs.
	Commands []Command
	// Files are the files that the commands name as read, written, deleted or run. A word that is given to a program or
	// option of which nothing is known counts as a file, too: its access is Uses.
	Files []File
	// Hosts are the machines that the commands name.
	Hosts []Host
	// Opaque are the places where something may run or change that cannot be known
	// from the text. None means that the list of commands is whole.
	Opaque []Opaque
	// Unparseable is set when the line is not bash, or more than is looked at. The
	// commands are then those before the error, which bash may well run.
	Unparseable *SyntaxError
	// OpenQuote says that all that is wrong is a quote that is not closed: bash runs
	// nothing of the command that it stands in. The commands are those of the line with
	// the quote closed at its end, which is what a shell that gets more text might run.
	OpenQuote bool
}

// Clear reports whether the list of commands is whole: the line is bash and no place
// in it is opaque.
func (a Analysis) Clear() bool { return a.Unparseable == nil && len(a.Opaque) == 0 }

// CommandsNamed returns the commands with one of the names.
func (a Analysis) CommandsNamed(names ...string) iter.Seq[Command] {
	return func(yield func(Command) bool) {
		for _, c := range a.Commands {
			if slices.Contains(names, c.Name) && !yield(c) {
				return
			}
		}
	}
}

// OpaqueFor reports whether a place is opaque for one of the reasons.
func (a Analysis) OpaqueFor(reasons ...Reason) bool {
	return slices.ContainsFunc(a.Opaque, func(o Opaque) bool { return slices.Contains(reasons, o.Reason) })
}

// Pos is a place in the line that was given. In text that was made from it (the
// text of sh -c, put together from variables) it is the place of the word that
// holds the text.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in bytes, from 1
}

// Command is a simple command that may run.
type Command struct {
	// Name is the last part of the path of what runs: "rm" for /bin/rm. Empty is
	// not known.
	Name string
	Kind Kind
	// Sub is the sub-command of a program that has them, without the options before
	// it: "push" for git -C dir push --force, "stash drop", "compose up". Empty for
	// other programs, and where it is not known.
	Sub string
	// Words are the name as written and all arguments.
	Words []Word
	// Args are the words after the name, or after the sub-command.
	Args []Word
	// Assigns are the variables set for this command alone.
	Assigns []Assign
	// Redirects are the redirections of this command, not of a group around it.
	Redirects []Redirect
	// Dirs are the directories it may run in, as far as cd on the same line goes:
	// "." is where the line starts when Options.Dir is not set. Empty is not known.
	Dirs []string
	// Code is the program in another language that the command carries, and
	// Language its name: python -c. Empty otherwise.
	Code     string
	Language string
	// Via is how the command is reached, outermost first. Empty is the line itself.
	Via []Step
	Pos Pos
}

// Kind says what a command is.
type Kind string

// The kinds of commands.
const (
	Program  Kind = "program"  // a file, found by PATH or named by its path
	Builtin  Kind = "builtin"  // part of bash
	Function Kind = "function" // declared on the line; its body is listed too
	Unknown  Kind = "unknown"  // the name is not known
)

// Known reports whether all words are literal.
func (c Command) Known() bool {
	return c.Kind != Unknown && !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Kind != Literal })
}

// Flag reports whether an option is among the arguments: the letter, alone or in a
// cluster (-f, -rf), or the long form (--force, --force=x, or its beginning --for).
// Either may be empty. What follows "--" is no option. It rather says yes: a letter
// that is the value of another option counts. A word that is not known does not.
func (c Command) Flag(letter, long string) bool {
	for _, w := range c.Args {
		text := w.Text
		if text == "--" && w.Kind == Literal {
			return false
		}
		if len(text) < 2 || text[0] != '-' {
			continue
		}
		if text[1] != '-' {
			cluster, _, _ := strings.Cut(text[1:], "=")
			if letter != "" && strings.Contains(cluster, letter) || long != "" && cluster == long {
				return true
			}
			continue
		}
		name, _, _ := strings.Cut(text[2:], "=")
		if long != "" && len(name) > 1 && strings.HasPrefix(long, name) {
			return true
		}
	}
	return false
}

// Operands returns the arguments that are no options: those that do not begin with "-",
// and all after "--". The values of options that stand apart are among them.
func (c Command) Operands() []Word {
	var operands []Word
	for i, w := range c.Args {
		if w.Kind == Literal && w.Text == "--" {
			return append(operands, c.Args[i+1:]...)
		}
		if !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			operands = append(operands, w)
		}
	}
	return operands
}

// Reached reports whether the command is reached by a step of the kind.
func (c Command) Reached(kind StepKind) bool {
	return slices.ContainsFunc(c.Via, func(s Step) bool { return s.Kind == kind })
}

// Assign is a variable set for one command.
type Assign struct {
	Name  string
	Value Word
}

// Redirect is a redirection of one command.
type Redirect struct {
	// Op is the operator as written: ">", ">>", "<", "<<<" …
	Op string
	// FD is what stands before it: "2" in 2>x. Empty is the operator's own.
	FD string
	// Target is the word after it. For a here-document it is the text of the document.
	Target Word
	Pos    Pos
}

// File is a file that something on the line names.
type File struct {
	// Path is the path from the root or, with a directory that is not known, from
	// where the line starts; "~/x" is below the home directory. It is cleaned, but
	// for a ".." after a name, since a link may stand there. A pattern stays one.
	Path string
	// Known reports that the path is all there is to know. Otherwise it is the
	// beginning, or what was written, with a directory that is not known. Of a word
	// whose end is known there is one more file, with "…" for what is not: "…/.env".
	Known  bool
	Access Access
	// Command is the index of the command among Analysis.Commands, or -1 for a
	// redirection of a group or of no command.
	Command int
	Word    Word
	Pos     Pos
}

// Access is what is done with a file.
type Access string

// What is done with files.
const (
	Reads   Access = "read"
	Writes  Access = "write"
	Deletes Access = "delete"
	Runs    Access = "run" // its content is code
	Uses    Access = "use" // what a program or option that is not known does with it: perhaps all of these
)

// Host is a machine that a command names.
type Host struct {
	// Name is as written, without user and port. Empty is not known.
	Name string
	// Port as written, empty for the one of the scheme.
	Port    string
	Command int // as in File
	Word    Word
	Pos     Pos
}

// Step is one part of the way to a command.
type Step struct {
	Kind StepKind
	// Name is what makes the step, where kinds alone do not say: "sudo", "xargs",
	// the name of the function, variable or host.
	Name string
	Pos  Pos
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	Pipe        StepKind = "pipe"         // fed by what stands before it
	And         StepKind = "and"          // after &&
	Or          StepKind = "or"           // after ||
	Background  StepKind = "background"   // before &
	Subshell    StepKind = "subshell"     // ( … )
	Group       StepKind = "group"        // { … }
	If          StepKind = "if"           // condition or branch
	Loop        StepKind = "loop"         // for, while, until, select
	Case        StepKind = "case"         // a branch of case
	Coproc      StepKind = "coproc"       //
	Substituted StepKind = "substitution" // $( … ), `…`
	Process     StepKind = "process"      // <( … ), >( … )
	Body        StepKind = "function"     // in a function that is called
	Declared    StepKind = "declared"     // in a function that nothing calls
	Alias       StepKind = "alias"        // by another name
	Wrapper     StepKind = "wrapper"      // started by the program of that name
	Shell       StepKind = "shell"        // text that the shell of that name runs
	Eval        StepKind = "eval"         // text that eval, trap and others run
	Environment StepKind = "environment"  // the value of a variable that some program runs
	Remote      StepKind = "remote"       // on another machine
	Container   StepKind = "container"    // in a container
)

// Opaque is a place where something may run that the text does not show.
type Opaque struct {
	Reason Reason
	// Detail is a sentence's part for people: `the name of the command is not known`.
	Detail string
	// Command is the index of the command that it is about, or -1.
	Command int
	Pos     Pos
}

// Reason is why a place is opaque.
type Reason string

// Why places are opaque.
const (
	OpaqueName        Reason = "name"        // which command runs is not known
	OpaqueText        Reason = "text"        // shell text that is not known: eval "$x"
	OpaqueInput       Reason = "input"       // commands come from a pipe or a file: curl … | sh
	OpaqueFile        Reason = "file"        // a file is run as shell text: bash x.sh, source x
	OpaqueCode        Reason = "code"        // code in another language: python -c …
	OpaqueEnvironment Reason = "environment" // a variable or setting changes what programs do
	OpaqueOption      Reason = "option"      // where a wrapped command begins is not sure
	OpaqueSyntax      Reason = "syntax"      // shells read it in different ways
	OpaqueLimit       Reason = "limit"       // more than is looked at
)

// SyntaxError says where a line stops being bash.
type SyntaxError struct {
	Pos  Pos
	Text string
}

// Error returns the text with line and column.
func (e *SyntaxError) Error() string {
	return "parsing the line: " + formatInt(e.Pos.Line) + ":" + formatInt(e.Pos.Column) + ": " + e.Text
}
