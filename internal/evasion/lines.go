package evasion

import (
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// shellLines returns lines of bash that run the command, each with the name of its variation. The command consists of
// words separated by spaces, without quotes.
func shellLines(command string) iter.Seq2[string, string] {
	return func(yield func(how, line string) bool) {
		words := strings.Fields(command)
		if len(words) == 0 {
			return
		}
		for _, list := range []iter.Seq2[string, string]{
			wordSpellings(words), optionOrders(words), wrapperLines(strings.Join(words, " "), words), compoundLines(strings.Join(words, " ")),
		} {
			for how, line := range list {
				if !yield(how, line) {
					return
				}
			}
		}
	}
}

// pairsOf returns a sequence of the pairs in a list.
func pairsOf(list ...string) iter.Seq2[string, string] {
	return func(yield func(a, b string) bool) {
		for i := 0; i+1 < len(list); i += 2 {
			if !yield(list[i], list[i+1]) {
				return
			}
		}
	}
}

// wordSpellings returns lines in which the words of the command are spelled differently.
func wordSpellings(words []string) iter.Seq2[string, string] {
	name, rest := words[0], strings.Join(words[1:], " ")
	with := func(spelt string) string { return strings.TrimRight(spelt+" "+rest, " ") }
	// each applies spell to all words except words that quoting changes, such as ~.
	each := func(spell func(word string) string) string {
		out := slices.Clone(words)
		for i, w := range words {
			if !strings.ContainsAny(w, "~*?[") {
				out[i] = spell(w)
			}
		}
		return strings.Join(out, " ")
	}
	quoted := func(w string) string { return "'" + w + "'" }
	list := []string{
		"as it stands", with(name),
		"quoted", with(quoted(name)),
		"in double quotes", with(`"` + name + `"`),
		"a letter quoted", with(`"` + name[:1] + `"` + name[1:]),
		"the end quoted", with(name[:1] + "'" + name[1:] + "'"),
		"empty quotes inside", with(name[:1] + "''" + name[1:]),
		"empty quotes before", with(`""` + name),
		"a backslash inside", with(name[:1] + `\` + name[1:]),
		"a backslash before", with(`\` + name),
		"a line continued inside", with(name[:1] + "\\\n" + name[1:]),
		"in dollar quotes", with("$'" + name + "'"),
		"an octal letter", with(fmt.Sprintf(`$'\%03o%s'`, name[0], name[1:])),
		"a hexadecimal letter", with(fmt.Sprintf(`$'\x%02x'%s`, name[0], name[1:])),
		"all words quoted", each(quoted),
		"all words with backslashes", each(func(w string) string { return `\` + w }),
		"tabs", strings.Join(words, "\t"),
		"IFS between the words", strings.Join(words, "${IFS}"),
		"a variable for the name", with("x=" + name + "; $x"),
		"a variable in quotes", with("x=" + name + ` && "$x"`),
		"a variable for a letter", with("x=" + name[:1] + "; ${x}" + name[1:]),
		"a default value", with("${zz_unset:-" + name + "}"),
		"a variable for the command", `x="` + strings.Join(words, " ") + `"; $x`,
		"an array", "x=(" + strings.Join(words, " ") + `); "${x[@]}"`,
		"positional parameters", "set -- " + strings.Join(words, " ") + `; "$@"`,
		"a substituted name", with("$(echo " + name + ")"),
		"a name in backquotes", with("`printf " + name + "`"),
		"a name in reverse", with("$(echo " + reverseText(name) + " | rev)"),
		"an absolute path", with("/bin/" + name),
		"another absolute path", with("/usr/bin/" + name),
		"a path in a roundabout way", with("/usr/../bin/./" + name),
		"a pattern for the name", with("/bin/" + name[:1] + "?" + name[min(2, len(name)):]),
		"an assignment before", with("A=b " + name),
		"a redirection before", with("2>/dev/null " + name),
	}
	if len(words) > 1 {
		list = append(list, "braces", "{"+strings.Join(words, ",")+"}")
	}
	return pairsOf(list...)
}

// optionOrders returns lines with the options of the command in other places, and with additional options.
func optionOrders(words []string) iter.Seq2[string, string] {
	if words[0] == "git" {
		rest := strings.Join(words[1:], " ")
		return pairsOf(
			"git in a folder", "git -C . "+rest,
			"git with a setting", "git -c color.ui=false "+rest,
			"git without a pager", "git --no-pager "+rest,
			"git with a folder of its own", "git --git-dir=.git --work-tree . "+rest,
			"git with options", "git -p --literal-pathspecs "+rest,
		)
	}
	options := 1
	for options < len(words) && strings.HasPrefix(words[options], "-") {
		options++
	}
	if options == 1 || options == len(words) || strings.Contains(strings.Join(words[options:], " "), " -") {
		return pairsOf()
	}
	name, before, behind := words[0], strings.Join(words[1:options], " "), strings.Join(words[options:], " ")
	return pairsOf(
		"options last", name+" "+behind+" "+before,
		"options on both sides", name+" "+before+" "+behind+" "+before,
		"operands behind --", name+" "+before+" -- "+behind,
	)
}

// wrapperLines returns lines in which other programs start the command.
func wrapperLines(line string, words []string) iter.Seq2[string, string] {
	list := []string{
		"sh -c", "sh -c '" + line + "'",
		"bash -lc", `bash -lc "` + line + `"`,
		"bash with options", "bash --norc -e -c '" + line + "'",
		"sh by its path", "/bin/sh -c '" + line + "'",
		"sh in sh", `sh -c "sh -c '` + line + `'"`,
		"sh with parameters", `sh -c '"$@"' _ ` + line,
		"busybox sh", "busybox sh -c '" + line + "'",
		"eval", "eval " + line,
		"eval of a text", "eval '" + line + "'",
		"a pipe to sh", "echo '" + line + "' | sh",
		"a pipe to bash -s", "printf '%s' '" + line + "' | bash -s",
		"a pipe from base64", "echo " + base64.StdEncoding.EncodeToString([]byte(line)) + " | base64 -d | sh",
		"a here-string", "bash <<< '" + line + "'",
		"a here-document", "sh <<'EOF'\n" + line + "\nEOF\n",
		"a file that is a pipe", "source <(echo '" + line + "')",
		"env -S", "env -S '" + line + "'",
		"xargs", "xargs " + line + " </dev/null",
		"xargs sh", "echo x | xargs -I{} sh -c '" + line + "'",
		"find -exec", "find . -maxdepth 0 -exec " + line + ` \;`,
		"python", `python3 -c 'import os; os.system("` + line + `")'`,
		"perl", `perl -e 'system("` + line + `")'`,
		"awk", `awk 'BEGIN { system("` + line + `") }'`,
		"a trap", "trap '" + line + "' EXIT",
		"an alias", "shopt -s expand_aliases\nalias zz='" + line + "'\nzz",
		"ssh", "ssh localhost " + line,
		"script", "script -qc '" + line + "' /dev/null",
		"the last word from a pipe", "echo " + words[len(words)-1] + " | xargs " + strings.Join(words[:len(words)-1], " "),
	}
	if len(words) == 1 {
		list = list[:len(list)-2]
	}
	for _, wrapper := range []string{
		"env", "env A=b", "env -i", "/usr/bin/env", "env -u A --", "sudo", "sudo -u root", "sudo -E --", "doas", "timeout 5", "timeout -k 1 --signal=KILL 5",
		"nice", "nice -n 5", "ionice -c 3", "nohup", "setsid", "stdbuf -oL", "time", "time -p", "command", "command --", "builtin command",
		"exec", "exec -a x", "busybox", "flock x", "chroot .", "strace -f", "sudo env timeout 5 nice",
	} {
		list = append(list, wrapper, wrapper+" "+line)
	}
	return pairsOf(list...)
}

// compoundLines returns lines that contain the command among others.
func compoundLines(line string) iter.Seq2[string, string] {
	return pairsOf(
		"behind ;", "ls; "+line,
		"behind &&", "ls && "+line,
		"behind ||", "false || "+line,
		"behind |", "ls | "+line,
		"before |", line+" | cat",
		"before |&", line+" |& cat",
		"behind &", "ls & "+line,
		"in the background", line+" &",
		"without spaces", "ls;"+line+";ls",
		"on the second line", "ls\n"+line,
		"on a line with carriage return", "ls\r\n"+line+"\n",
		"behind an empty line", "\n \t"+line,
		"before a comment", line+" # ls",
		"behind a comment", "# ls\n"+line,
		"in a subshell", "("+line+")",
		"in a group", "{ "+line+"; }",
		"negated", "! "+line,
		"substituted", "echo $("+line+")",
		"substituted in quotes", `echo "$(`+line+`)"`,
		"substituted in backquotes", "echo `"+line+"`",
		"substituted in an assignment", "x=$("+line+")",
		"substituted in a word", "ls x$("+line+")y",
		"substituted in a default", "echo ${zz:-$("+line+")}",
		"substituted in arithmetic", "echo $(( $("+line+") + 1 ))",
		"substituted in a test", "[[ -n $("+line+") ]]",
		"substituted in a redirection", "ls > $("+line+")",
		"substituted in a here-document", "cat <<EOF\n$("+line+")\nEOF\n",
		"substituted in a list", "for x in $("+line+"); do ls; done",
		"as a process", "cat <("+line+")",
		"as a process that reads", "ls > >("+line+")",
		"in an array", "x=([0]=$("+line+"))",
		"in an index", "x[$("+line+")]=1",
		"in a declaration", "declare x=$("+line+")",
		"in a condition", "if "+line+"; then ls; fi",
		"in a branch", "if true; then "+line+"; fi",
		"in another branch", "if true; then ls; else "+line+"; fi",
		"in a loop", "while true; do "+line+"; break; done",
		"in the head of a loop", "until "+line+"; do ls; done",
		"in a for loop", "for x in 1; do "+line+"; done",
		"in a case", "case x in x) "+line+";; esac",
		"in a function", "zz() { "+line+"; }; zz",
		"in a function of another name", "ls() { "+line+"; }; ls",
		"as a coprocess", "coproc "+line,
		"behind exit", "exit 0; "+line,
	)
}

func reverseText(text string) string {
	out := []byte(text)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}
