package bash

import (
	"iter"
	"slices"
	"strings"
)

// Options describe the shell that will run the line. With the zero value, nothing is known about it.
type Options struct {
	// Dir is the initial working directory. If it is empty, the directory is unknown, and relative paths stay
	// relative.
	Dir string
	// Repository is the top folder of the Git repository that contains Dir. If it is empty, it is unknown.
	Repository string
	// Home is the value of ~ and $HOME. If it is empty, paths keep the tilde: "~/x".
	Home string
	// Env holds the variables known to be set. The values of all other variables are unknown.
	Env map[string]string
}

// Analysis describes what running a line of bash may do. It does not change later.
type Analysis struct {
	// Commands lists the simple commands that may run, in reading order. Commands inside sudo, sh -c, $(…) and the
	// like follow the command that contains them. If no place is opaque and the line has no syntax error, nothing
	// else runs.
	Commands []Command
	// Files lists the files that the commands read, write, delete or run. A word with an unknown meaning, such as an
	// argument of an unknown program, counts as a file with access Uses.
	Files []File
	// Hosts lists the machines that the commands name.
	Hosts []Host
	// Opaque lists the places where something may run or change that the text does not show. If it is empty and
	// Unparseable is nil, Commands is complete.
	Opaque []Opaque
	// Unparseable is set if the line is not valid bash or exceeds a limit. Commands then holds the commands before
	// the error, which bash may still run.
	Unparseable *SyntaxError
	// OpenQuote reports whether the only error is a quote that is never closed. Bash does not run the command that
	// contains such a quote. Commands then describes the line with the quote closed at its end, which a shell that
	// receives more text might run.
	OpenQuote bool
}

// Clear reports whether Commands is complete: the line is valid bash, and no place in it is opaque.
func (a Analysis) Clear() bool { return a.Unparseable == nil && len(a.Opaque) == 0 }

// CommandsNamed returns the commands with any of the names.
func (a Analysis) CommandsNamed(names ...string) iter.Seq[Command] {
	return func(yield func(Command) bool) {
		for _, c := range a.Commands {
			if slices.Contains(names, c.Name) && !yield(c) {
				return
			}
		}
	}
}

// Pos is a position in the analysed line. Text that was built from the line, such as sh -c "$x", has the position of
// the word that contains it.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in bytes, from 1
}

// Command is a simple command that may run.
type Command struct {
	// Name is the last element of the program's path: "rm" for /bin/rm. It is empty if unknown.
	Name string
	Kind Kind
	// Listed reports whether the analysis knows the command: its options, and which of its words are files or hosts.
	Listed bool
	// Sub is the sub-command without the options before it: "push" for git -C dir push --force, "stash drop",
	// "compose up". It is empty if unknown or if the program has none.
	Sub string
	// Words lists all of the command's words: the name as written, and the arguments.
	Words []Word
	// Args lists the words after the name or sub-command.
	Args []Word
	// Assigns lists the variables set for this command alone.
	Assigns []Assign
	// Redirects lists this command's redirections, without redirections of an enclosing group.
	Redirects []Redirect
	// Dirs lists the directories in which the command may run, following cd on the same line. "." is the initial
	// directory if Options.Dir is not set. An empty list means unknown.
	Dirs []string
	// Code is a program in another language that the command contains, as in python -c, and Language is the
	// language's name. Both are empty for other commands.
	Code     string
	Language string
	// Effects lists what the command may lose, skip or set beyond the files that it uses. They are known for git, and
	// for programs that otherwise only read.
	Effects []Effect
	// Via lists the steps that lead to the command, outermost first. It is empty for a top-level command.
	Via []Step
	Pos Pos
}

// Kind is a command's kind.
type Kind string

// The kinds of commands.
const (
	Program  Kind = "program"  // a file, found in PATH or named by its path
	Builtin  Kind = "builtin"  // part of bash
	Function Kind = "function" // declared on the line; its body is also listed
	Unknown  Kind = "unknown"  // unknown name
)

// Effect is something that a command may do beyond using files and hosts.
type Effect string

// The effects of commands.
const (
	DiscardsChanges Effect = "discards-changes" // git overwrites or deletes uncommitted changes
	LosesCommits    Effect = "loses-commits"    // git drops commits that may be on no other branch
	ReplacesPushed  Effect = "replaces-pushed"  // git replaces or deletes commits on a server
	SkipsChecks     Effect = "skips-checks"     // git skips the project's hooks, signatures or other checks
	SetsPrograms    Effect = "sets-programs"    // a git setting that may name a program to run, or a host
	ChangesSystem   Effect = "changes-system"   // sets the machine's clock or name
)

// Known reports whether all words are literal.
func (c Command) Known() bool {
	return c.Kind != Unknown && !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Kind != Literal })
}

// Flag reports whether an option is among the arguments: the letter, alone or in a cluster (-f, -rf), or the long
// form (--force, --force=x, or a prefix such as --for). Either may be empty. Words after "--" are not options. If in
// doubt, Flag returns true: a letter in another option's value counts. An unknown word does not count.
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

// Operands returns the arguments that do not begin with "-", and all arguments after "--". This includes option
// values that are separate words.
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

// Reached reports whether a step of the given kind leads to the command.
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
	// Target is the word after the operator or, for a here-document, the document's text.
	Target Word
	Pos    Pos
}

// File is a file that the line names.
type File struct {
	// Path is relative to the root or, if the directory is unknown, to the initial directory; "~/x" is below the home
	// directory. It is cleaned, except for ".." after a name, because the name may be a link. A pattern stays a
	// pattern.
	Path string
	// Known reports whether Path is complete. Otherwise Path is its known beginning, or the path as written in an
	// unknown directory. If the end of a word is known, Files has another entry with "…" for the unknown part:
	// "…/.env".
	Known  bool
	Access Access
	// Command is the command's index in Analysis.Commands. It is -1 for a redirection of a group or without a
	// command.
	Command int
	Word    Word
	Pos     Pos
}

// Access is how a command uses a file.
type Access string

// The kinds of access.
const (
	Reads   Access = "read"
	Writes  Access = "write"
	Deletes Access = "delete"
	Runs    Access = "run"   // its content runs as code
	Empties Access = "empty" // nothing is left of its content: : > f, cp /dev/null f; it is also written
	Uses    Access = "use"   // an unknown program or option uses it: possibly in all of these ways
)

// Host is a machine that a command names.
type Host struct {
	// Name is the host as written, without user and port. It is empty if unknown.
	Name string
	// Port is the port as written. It is empty for the scheme's default port.
	Port    string
	Command int // as in File
	// Variable is the environment variable that holds the name, which the command may never reach. It is empty for
	// other hosts.
	Variable string
	Word     Word
	Pos      Pos
}

// Step is one step that leads to a command.
type Step struct {
	Kind StepKind
	// Name names the step's program, function, variable or host: "sudo", "xargs". It is empty if the kind says
	// everything.
	Name string
	Pos  Pos
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	Pipe        StepKind = "pipe"         // reads the previous command's output
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
	Declared    StepKind = "declared"     // in a function that is never called
	Alias       StepKind = "alias"        // by another name
	Wrapper     StepKind = "wrapper"      // started by the program Name
	Shell       StepKind = "shell"        // in text that the shell Name runs
	Eval        StepKind = "eval"         // in text that eval, trap and the like run
	Environment StepKind = "environment"  // in a variable's value that a program runs
	Remote      StepKind = "remote"       // on another machine
	Container   StepKind = "container"    // in a container
)

// Opaque is a place where something may run that the text does not show.
type Opaque struct {
	Reason Reason
	// Detail describes the place for people, such as `the name of the command is unknown`.
	Detail string
	// Command is the index of the affected command in Analysis.Commands, or -1.
	Command int
	Pos     Pos
}

// Reason is why a place is opaque.
type Reason string

// The reasons for opaque places.
const (
	OpaqueName        Reason = "name"        // the command is unknown
	OpaqueText        Reason = "text"        // unknown shell text: eval "$x"
	OpaqueInput       Reason = "input"       // commands come from a pipe or a file: curl … | sh
	OpaqueFile        Reason = "file"        // a file is run as shell text: bash x.sh, source x
	OpaqueCode        Reason = "code"        // code in another language: python -c …
	OpaqueEnvironment Reason = "environment" // a variable or setting changes what programs do
	OpaqueOption      Reason = "option"      // it is unclear where a wrapped command begins
	OpaqueSyntax      Reason = "syntax"      // shells parse the text differently
	OpaqueLimit       Reason = "limit"       // the line exceeds a limit
)

// SyntaxError says where and why a line is not valid bash.
type SyntaxError struct {
	Pos  Pos
	Text string
}

// Error returns the text with line and column.
func (e *SyntaxError) Error() string {
	return "parsing the line: " + formatInt(e.Pos.Line) + ":" + formatInt(e.Pos.Column) + ": " + e.Text
}
