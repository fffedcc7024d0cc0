// Package bash says what running a line of bash may do, before it runs: which
// commands with which words, which files, which hosts, and where that cannot be known.
// Hooks and policies judge; this package only looks.
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
// [Analysis.Commands] has every simple command that may run. Branches that may not be
// taken count, and so does what comes after exit. A wrapper is listed, and what it
// starts as well: sudo env rm x is three commands. [Command.Via] says how each is
// reached, [Command.Words] what it is given, [Command.Dirs] where it runs.
//
// The text is parsed by mvdan.cc/sh and walked as bash would run it: lists and pipes,
// subshells and groups, conditions, loops and functions, substitutions wherever they
// may stand, here-documents, quotes of every kind, braces, aliases. What variables and
// positional parameters hold is followed along the line, and the variable of a loop over
// *.go is, in quotes, that pattern ("${f%.go}" is *); echo, printf and here-documents
// that feed a shell are read. Programs that start others are known by the grammar of
// their options: sudo, env, timeout, xargs, find, parallel, ssh, docker, git and some
// two hundred more. Those that read, write or reach something give files and hosts.
//
// Of other programs, and of options that no table has, nothing is known: each of their words
// counts as a file with access [Uses], and so does what is glued to an option (-o../x) or stands
// behind = : , @ in a word. A URL in such a word is a host. A path that names the program itself
// is a file with access [Runs]. Paths and URLs in variables that programs are given count, too.
//
// A [Word] is literal, a pattern, or known in part; a rule that compares texts asks
// [Word.Is], which only says yes when the word is certain. ~ and $HOME stay "~" unless
// [Options] says more, so that "~/.ssh" can be compared.
//
// How values are followed, and why a value that is not known never hides anything, is
// explained in docs/bash-analysis.md.
//
// # What is opaque
//
// [Analysis.Opaque] names each place where something runs that the text does not show,
// with a reason to decide by: the name of a command that is not known, shell text that
// is not known (eval, sh -c), commands out of a pipe (curl … | sh), a file that is run
// as commands, code in another language (python -c), a variable or setting that changes
// what programs run or reach (PATH, LD_PRELOAD, GIT_SSH_COMMAND, https_proxy, git -c,
// go env -w), a wrapper with an option that is not known, text that shells read in
// different ways, and more than is looked at. When in doubt, a place is opaque. With none,
// and no syntax error, the list is whole: [Analysis.Clear].
//
// What bash evaluates again is opaque, unless it is known to be a number or a plain
// expression: arithmetic, the index of an array, an assignment to an integer (declare -i,
// RANDOM=, OPTIND=), an array in quotes (declare -a 'x=(…)'), and the names that test -v,
// read, printf -v, unset and wait -p take. Which variables hold numbers is followed: i=0,
// $((i + 1)), $(wc -l <x) and the items of {1..20} do.
//
// What is listed at or behind an opaque place is a good guess, for rules that deny.
//
// Bash runs nothing of a command whose quote is never closed. Such a line is
// unparseable, and Analysis.OpenQuote says that this is all that is wrong with it:
// what is listed is the line with the quote closed at its end.
//
// # What cannot be seen
//
//   - What programs do inside: ./build.sh, make, npm install and python x.py run code
//     that lies elsewhere. Only shells and source make such a file opaque; for others
//     there is a [File] with access [Runs], where the file is named.
//   - What the shell was told before: functions, aliases and variables of an earlier
//     line in the same session, of .bashrc or of exported functions. Variables count as
//     not known; a function that shadows ls does not show.
//   - What is on the disk: links, what a pattern matches, whether cd succeeds (both
//     directories are named), what a program of a known name really is.
//   - Other shells. zsh, fish and csh are read as bash, and are opaque unless their text
//     is plain words. The locale may change what $"…" says.
//   - What containers and other machines make of a command: it is listed with a step
//     [Remote] or [Container], and its paths are those of over there.
//
// # Rules
//
// [Analyse] is a pure function: it starts nothing, reads nothing, keeps nothing, and
// may be called at once from many goroutines. The same line gives the same answer.
// A line of more than 64 KiB is unparseable; work, depth, commands and the length of
// words are bounded, and a bound that is reached is told as opaque. An ordinary line
// takes about 10 µs, a third of it to parse.
package bash
