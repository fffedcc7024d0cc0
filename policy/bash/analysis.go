package bash

import (
	"iter"
	"slices"
	"strings"
)

// Options describe the shell that will run the line. With the zero value, nothing is known about it.
type Options struct {
	// Dir is the working directory at the start. If it is empty, the directory is unknown, and relative paths stay
	// relative.
	Dir string
	// Home is the value of ~ and $HOME. If it is empty, paths keep the tilde: "~/x".
	Home string
	// Env holds the variables known to be set. The values of all others are unknown.
	Env map[string]string
}

// Analysis describes what running a line of bash may do. Nothing changes it later.
type Analysis struct {
	// Commands are the simple commands that may run, in reading order. Commands inside sudo, sh -c, $(…) and the like
	// follow the command that contains them. If no place is opaque and the line has no syntax error, nothing else
	// runs.
	Commands []Command
	// Files are the files that the commands read, write, delete or run. A word of an unknown program or option counts
	// as a file, too, with the access Uses.
	Files []File
	// Hosts are the machines that the commands name.
	Hosts []Host
	// Opaque lists the places where something may run or change that the text does not show. If it is empty and
	// Unparseable is nil, the list of commands is complete.
	Opaque []Opaque
	// Unparseable is set if the line is not bash or exceeds a limit. Commands then holds the commands before the
	// error, which bash may still run.
	Unparseable *SyntaxError
	// OpenQuote reports whether the only error is a quote that is never closed. Bash does not run the command that
	// contains such a quote. Commands then describes the line with the quote closed at its end, which a shell that
	// receives more text might run.
	OpenQuote bool
}

// Clear reports whether the list of commands is complete: the line is bash, and no place in it is opaque.
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

// Pos is a position in the analysed line. Text that was built from the line, such as the text of sh -c with
// variables, has the position of the word that contains it.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in bytes, from 1
}

// Command is a simple command that may run.
type Command struct {
	// Name is the last part of the path of the program: "rm" for /bin/rm. It is empty if unknown.
	Name string
	Kind Kind
	// Sub is the sub-command without the options before it: "push" for git -C dir push --force, "stash drop",
	// "compose up". It is empty if it is unknown or the program has none.
	Sub string
	// Words are all words of the command: the name as written, and the arguments.
	Words []Word
	// Args are the words after the name, or after the sub-command.
	Args []Word
	// Assigns are the variables set for this command alone.
	Assigns []Assign
	// Redirects are the redirections of this command, not of a group around it.
	Redirects []Redirect
	// Dirs are the directories in which the command may run, following cd on the same line. "." is the start
	// directory if Options.Dir is not set. An empty list means unknown.
	Dirs []string
	// Code is a program in another language that the command carries, as with python -c, and Language the name of the
	// language. Both are empty for other commands.
	Code     string
	Language string
	// Effects are what the command may lose, skip or set beyond the files that it uses. They are known for git, and for
	// programs that otherwise only read.
	Effects []Effect
	// Via is how the command is reached, the outermost step first. It is empty for a command of the line itself.
	Via []Step
	Pos Pos
}

// Kind is the kind of a command.
type Kind string

// The kinds of commands.
const (
	Program  Kind = "program"  // a file, found by PATH or named by its path
	Builtin  Kind = "builtin"  // part of bash
	Function Kind = "function" // declared on the line; its body is listed too
	Unknown  Kind = "unknown"  // the name is not known
)

// Effect is something that a command may do beyond using files and hosts.
type Effect string

// The effects of commands.
const (
	DiscardsChanges Effect = "discards-changes" // git overwrites or deletes changes that are not committed
	LosesCommits    Effect = "loses-commits"    // git drops commits that may be on no other branch
	ReplacesPushed  Effect = "replaces-pushed"  // git replaces or deletes commits on a server
	SkipsChecks     Effect = "skips-checks"     // git skips hooks, signatures or other checks of a project
	SetsPrograms    Effect = "sets-programs"    // a setting of git that may name a program to run, or a host
	ChangesSystem   Effect = "changes-system"   // it sets the clock or the name of the machine
)

// Known reports whether all words are literal.
func (c Command) Known() bool {
	return c.Kind != Unknown && !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Kind != Literal })
}

// Flag reports whether an option is among the arguments: the letter, alone or in a cluster (-f, -rf), or the long
// form (--force, --force=x, or a prefix such as --for). Either may be empty. Words after "--" are not options. If in
// doubt Flag returns true: a letter in the value of another option counts. An unknown word does not count.
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

// Operands returns the arguments that do not begin with "-", and all arguments after "--". They include the values of
// options that are separate words.
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

// Reached reports whether a step of the kind leads to the command.
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
	// FD is the file descriptor before the operator: "2" in 2>x. Empty means the operator's default.
	FD string
	// Target is the word after it. For a here-document it is the text of the document.
	Target Word
	Pos    Pos
}

// File is a file that the line names.
type File struct {
	// Path is relative to the root or, if the directory is unknown, to the start directory; "~/x" is below the home
	// directory. It is cleaned, except for a ".." after a name, because the name may be a link. A pattern stays a
	// pattern.
	Path string
	// Known reports whether Path is complete. Otherwise Path is its known beginning, or the path as written in an
	// unknown directory. If the end of a word is known, Files has another entry with "…" for the unknown part:
	// "…/.env".
	Known  bool
	Access Access
	// Command is the index of the command in Analysis.Commands. It is -1 for a redirection of a group, or without a
	// command.
	Command int
	Word    Word
	Pos     Pos
}

// Access is the way in which a command uses a file.
type Access string

// The kinds of access.
const (
	Reads   Access = "read"
	Writes  Access = "write"
	Deletes Access = "delete"
	Runs    Access = "run" // its content is code
	Uses    Access = "use" // an unknown program or option uses it: possibly all of the above
)

// Host is a machine that a command names.
type Host struct {
	// Name is the host as written, without user and port. It is empty if unknown.
	Name string
	// Port is the port as written. It is empty for the default port of the scheme.
	Port    string
	Command int // as in File
	Word    Word
	Pos     Pos
}

// Step is one step on the way to a command.
type Step struct {
	Kind StepKind
	// Name is the name of the program, function, variable or host of the step: "sudo", "xargs". It is empty if the
	// kind says everything.
	Name string
	Pos  Pos
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	Pipe        StepKind = "pipe"         // reads the output of the command before it
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
	Wrapper     StepKind = "wrapper"      // started by the program Name
	Shell       StepKind = "shell"        // in text that the shell Name runs
	Eval        StepKind = "eval"         // in text that eval, trap and others run
	Environment StepKind = "environment"  // in the value of a variable that a program runs
	Remote      StepKind = "remote"       // on another machine
	Container   StepKind = "container"    // in a container
)

// Opaque is a place where something may run that the text does not show.
type Opaque struct {
	Reason Reason
	// Detail describes the place for people, such as `the name of the command is unknown`.
	Detail string
	// Command is the index of the command concerned in Analysis.Commands, or -1.
	Command int
	Pos     Pos
}

// Reason is the reason why a place is opaque.
type Reason string

// The reasons why places are opaque.
const (
	OpaqueName        Reason = "name"        // the command is unknown
	OpaqueText        Reason = "text"        // unknown shell text: eval "$x"
	OpaqueInput       Reason = "input"       // commands come from a pipe or a file: curl … | sh
	OpaqueFile        Reason = "file"        // a file is run as shell text: bash x.sh, source x
	OpaqueCode        Reason = "code"        // code in another language: python -c …
	OpaqueEnvironment Reason = "environment" // a variable or setting changes what programs do
	OpaqueOption      Reason = "option"      // it is uncertain where a wrapped command begins
	OpaqueSyntax      Reason = "syntax"      // shells parse the text differently
	OpaqueLimit       Reason = "limit"       // the line exceeds a limit
)

// SyntaxError is the position at which a line stops being valid bash, and the reason.
type SyntaxError struct {
	Pos  Pos
	Text string
}

// Error returns the text with line and column.
func (e *SyntaxError) Error() string {
	return "parsing the line: " + formatInt(e.Pos.Line) + ":" + formatInt(e.Pos.Column) + ": " + e.Text
}
