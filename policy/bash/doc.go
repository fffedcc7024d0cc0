// Package bash determines what running a line of bash may do, before it runs: which commands run with which words,
// which files and hosts they name, and where this is unknown. Hooks and policies judge the result; this package only
// analyses.
//
//	var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe",
//		hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
//			line := bash.Analyse(command, bash.Options{Dir: "/srv/app"})
//			if !line.Clear() {
//				return c.Deny("the line may run more than it shows: write plain commands")
//			}
//			for _, file := range line.Files {
//				if file.Access == bash.Deletes {
//					return c.Deny("nothing is deleted: " + file.Word.Source)
//				}
//			}
//			return c.Allow()
//		}), hooks.ToolNamed("bash"))
//
// # What is listed
//
// [Analysis.Commands] contains every simple command that may run, including commands in branches that may not be
// taken and commands after exit. It contains both a wrapper and the commands that the wrapper starts: sudo env rm x is
// three commands. [Command.Via] is how each command is reached, [Command.Words] are its words, and [Command.Dirs] the
// directories in which it may run.
//
// The text is parsed by mvdan.cc/sh and walked as bash would run it: lists and pipes, subshells and groups,
// conditions, loops and functions, substitutions, here-documents, all kinds of quotes, braces, aliases. The analysis
// follows the values of variables and positional parameters along the line. The quoted variable of a loop over *.go
// is that pattern ("${f%.go}" is *). The analysis reads echo, printf and here-documents that feed a shell. It knows the
// option grammars of programs that start others: sudo, env, timeout, xargs, find, parallel, ssh, docker, git and some two
// hundred more. Programs that read, write or reach something yield files and hosts.
//
// Other programs, and options that no table contains, are unknown. Each of their words counts as a file with access
// [Uses], and so does text that is attached to an option (-o../x) or follows = : , @ in a word. A URL in such a word
// is a host. A path that names the program itself is a file with access [Runs]. Paths and URLs in variables that
// programs receive count, too.
//
// A [Word] is literal, a pattern, or partly known. A rule that compares words should call [Word.Is], which returns
// true only if the word is certain. ~ and $HOME stay "~" unless [Options] sets a home directory, so rules can compare
// "~/.ssh".
//
// docs/bash-analysis.md explains how values are followed, and why an unknown value never hides anything.
//
// # What is opaque
//
// [Analysis.Opaque] lists each place where something runs that the text does not show, with a reason: an unknown
// command name, unknown shell text (eval, sh -c), commands from a pipe (curl … | sh), a file that is run as commands,
// code in another language (python -c), a variable or setting that changes what programs run or reach (PATH,
// LD_PRELOAD, GIT_SSH_COMMAND, https_proxy, git -c, go env -w), a wrapper with an unknown option, text that shells
// parse differently, and a line that exceeds a limit. When in doubt, a place is opaque. If no place is opaque and
// there is no syntax error, the list is complete: [Analysis.Clear].
//
// Text that bash evaluates again is opaque unless it is known to be a number or a plain expression: arithmetic, an array
// index, an assignment to an integer (declare -i, RANDOM=, OPTIND=), a quoted array (declare -a 'x=(…)'),
// and the names that test -v, read, printf -v, unset and wait -p take. The analysis tracks which variables are
// numbers: variables set by i=0, $((i + 1)) or $(wc -l <x), and the items of {1..20}.
//
// The commands listed at or after an opaque place are a good guess, which rules may use to deny.
//
// Bash does not run a command whose quote is never closed. Such a line is unparseable, and Analysis.OpenQuote reports
// that this is the only error. The analysis then describes the line with the quote closed at its end.
//
// # What cannot be seen
//
//   - The inside of programs: ./build.sh, make, npm install and python x.py run code from files. Only shells and source
//     make such a file opaque; for others there is a [File] with access [Runs] if the line names the file.
//   - Earlier shell input: functions, aliases and variables from a previous line in the same session, from .bashrc
//     or from exported functions. Variables count as unknown; a function that shadows ls does not show.
//   - The disk: links, the matches of a pattern, whether cd succeeds (both directories are listed), the real
//     program behind a known name.
//   - Other shells. zsh, fish and csh are read as bash, and are opaque unless their text is plain words. The locale may
//     change the text of $"…".
//   - Containers and other machines: a command there has a step [Remote] or [Container], and its paths
//     are paths over there.
//
// # Rules
//
// [Analyse] is a pure function: it starts nothing, reads nothing and keeps nothing, and is safe for concurrent
// use. The same line gives the same result. A line of more than 64 KiB is unparseable. Work, depth, the
// number of commands and the length of words are bounded, and a line that reaches a bound is opaque. An ordinary line
// takes about 10 µs, a third of it for parsing.
package bash
