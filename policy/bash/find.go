package bash

import (
	"strings"

	"github.com/samber/lo"
)

// walkFind walks the expression of find.
//
//nolint:gocognit // flat: one case for each test
func walkFind(w *walker, c ctx, k call, _ given) {
	args := k.args()
	defer claimAll(args) // this function reads the whole expression
	var roots []Word
	i := 0
	for ; i < len(args); i++ {
		text := args[i].Text
		if args[i].Kind == Literal && (text == "-H" || text == "-L" || text == "-P" || text == "--" || strings.HasPrefix(text, "-O")) {
			continue
		}
		if args[i].Is("-D") {
			i++
			continue
		}
		if text != "" && (text[0] == '-' && len(text) > 1 || text[0] == '(' || text[0] == '!' || text == ",") && args[i].Kind != Partial {
			break
		}
		if len(roots) > 0 && args[i].Many && args[i].Kind == Partial && text == "" {
			w.opaque(c, args[i].Pos.Offset, k.index, OpaqueOption, "part of the find expression is unknown")
		}
		roots = append(roots, args[i])
	}
	if len(roots) == 0 {
		roots = []Word{literalWord(".", w.place(k.at))}
	}
	deletes := false
	for ; i < len(args); i++ {
		a := args[i]
		if a.Kind != Literal {
			w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "part of the find expression is unknown")
			continue
		}
		switch a.Text {
		case "-exec", "-execdir", "-ok", "-okdir":
			i = w.findExec(c, k, args, i, roots)
		case "-delete":
			deletes = true
		case "-fprint", "-fprint0", "-fls":
			if i++; i < len(args) {
				w.file(c, args[i], Writes, k.index)
			}
		case "-fprintf":
			if i++; i < len(args) {
				w.file(c, args[i], Writes, k.index)
			}
			i++
		case "-files0-from":
			if i++; i < len(args) {
				w.file(c, args[i], Reads, k.index)
				w.file(c, makeWord(unknown, false, true, "", args[i].Pos), Reads, k.index)
			}
		case "-newer", "-anewer", "-cnewer", "-samefile":
			if i++; i < len(args) {
				w.file(c, args[i], Reads, k.index)
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex":
			if i++; i < len(args) && !findExcludes(args, i-1) {
				for _, root := range roots {
					w.namedFiles(c, k, lo.Ternary(root.Kind == Pattern, root.Text, root.loose()), findPattern(a.Text, args[i]))
				}
			}
		default:
			if findTakesOne(a.Text) {
				if i++; i < len(args) && args[i].Many && args[i].Kind == Partial {
					w.opaque(c, args[i].Pos.Offset, k.index, OpaqueOption, "part of the find expression is unknown")
				}
			}
		}
	}
	access := Reads
	if deletes {
		access = Deletes
	}
	for _, root := range roots {
		w.file(c, root, access, k.index)
	}
}

// findPattern returns the value of a find test as a file name pattern: in lower case if the test ignores case, and an
// approximate pattern for a regular expression.
func findPattern(test string, value Word) Word {
	text := value.raw
	if strings.HasPrefix(test, "-i") {
		text = strings.ToLower(text)
	}
	if strings.HasSuffix(test, "regex") {
		text = regexpAsPattern(text)
	}
	word := makeWord(text, false, false, value.Source, value.Pos)
	word.also = value.also
	return word
}

// regexpAsPattern returns a file name pattern that approximates a regular expression: ^\.env$ is .env.
func regexpAsPattern(text string) string {
	return strings.NewReplacer("^", "", "$", "", ".*", "*", ".+", "?*", `\.`, ".", `\(`, "{", `\)`, "}", `\|`, ",", "(", "{", ")", "}", "|", ",").Replace(text)
}

// findExcludes reports whether find omits the files that the test at args[i] matches: after !, or in a part that ends
// in -prune and does nothing else.
func findExcludes(args []Word, i int) bool {
	depth := 0
	for j := i - 1; j >= 0; j-- {
		switch args[j].Text {
		case ")":
			depth++
		case "(":
			depth--
		case "!", "-not":
			if j == i-1 || depth < 0 && args[j+1].Is("(") {
				return true
			}
		}
	}
	prunes, open := false, 0
	for _, a := range args[i:] {
		switch {
		case a.Is("("):
			open++
		case a.Is(")"):
			open--
		case a.Is("-o") || a.Is("-or") || a.Is(","):
			if prunes && open <= 0 {
				return true
			}
		case a.Is("-prune"):
			prunes = true
		case prunes && (strings.HasPrefix(a.Text, "-exec") || strings.HasPrefix(a.Text, "-print") || strings.HasPrefix(a.Text, "-ok") || a.Is("-ls")):
			return false
		}
	}
	return false
}

// findTakesOne reports whether a find test or action takes exactly one value: -name '*.go', -newermt yesterday.
func findTakesOne(test string) bool {
	switch test {
	case "-amin", "-atime", "-cmin", "-ctime", "-mmin", "-mtime", "-fstype", "-gid", "-group", "-ilname", "-inum",
		"-links", "-lname", "-perm", "-size", "-type", "-uid", "-used", "-user", "-xtype",
		"-context", "-maxdepth", "-mindepth", "-regextype", "-printf", "-flags", "-mount_point", "-depth_", "-xattrname", "-Bmin", "-Btime":
		return true
	}
	return strings.HasPrefix(test, "-newer") && len(test) == len("-newerXY")
}

// findExec walks the command of -exec and returns the index of its end.
func (w *walker) findExec(c ctx, k call, args []Word, i int, roots []Word) int {
	name := args[i].Text
	from := i + 1
	end := from
	for ; end < len(args); end++ {
		if args[end].Is(";") || args[end].Is("+") && end > from && args[end-1].Is("{}") && !strings.HasPrefix(name, "-ok") {
			break
		}
		if args[end].Many {
			w.opaque(c, args[end].Pos.Offset, k.index, OpaqueOption, "it is unknown where the command of find ends")
		}
	}
	if from >= end {
		return end
	}
	prefix := commonPrefix(roots)
	names := findNames(findRoots(withoutExec(args)))
	if strings.HasSuffix(name, "dir") {
		prefix, names = "./"+unknown, nil
	}
	words := make([]Word, 0, end-from)
	for _, a := range args[from:end] {
		switch {
		case a.Is("{}") && len(names) > 0:
			words = append(words, namedWords(names, false, a.Source, a.Pos)...)
			continue
		case a.Kind == Literal && len(names) == 1 && strings.Contains(a.raw, "{}"):
			a = foundIn(a, "{}", names[0], false)
		case strings.Contains(a.raw, "{}"):
			found := unknown
			if strings.HasPrefix(a.raw, "{}") {
				found = prefix
			}
			a = makeWord(strings.ReplaceAll(a.raw, "{}", found), false, end < len(args) && args[end].Text == "+", a.Source, a.Pos)
		}
		words = append(words, a)
	}
	e := c.by(Wrapper, "find "+name, args[i].Pos.Offset)
	if strings.HasSuffix(name, "dir") {
		e.st = c.st.fork()
		e.st.dirs = nil
	}
	w.run(e, call{words: words, at: words[0].Pos.Offset, outside: true})
	return end
}

// withoutExec returns the arguments of find without the commands that it runs.
func withoutExec(args []Word) []Word {
	var rest []Word
	inside := false
	for i, a := range args {
		switch {
		case a.Is("-exec"), a.Is("-execdir"), a.Is("-ok"), a.Is("-okdir"):
			inside = true
		case inside && (a.Is(";") || a.Is("+") && args[i-1].Is("{}")):
			inside = false
		case !inside:
			rest = append(rest, a)
		}
	}
	return rest
}

// walkFD walks the command that fd runs for each file that it finds.
func walkFD(w *walker, c ctx, k call, _ given) {
	args := k.args()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.Kind != Literal && strings.HasPrefix(a.Text+"-", "-") {
			w.opaque(c, a.Pos.Offset, k.index, OpaqueOption, "unknown option of fd")
			continue
		}
		name, _, attached := strings.Cut(a.Text, "=")
		switch {
		case (a.Is("-e") || a.Is("--extension")) && i+1 < len(args):
			w.namedFiles(c, k, "", makeWord("*."+strings.TrimPrefix(args[i+1].raw, "."), false, false, "", a.Pos))
		case name == "--extension" && attached:
			w.namedFiles(c, k, "", makeWord("*."+a.cut(len(name)+1).raw, false, false, "", a.Pos))
		case strings.HasPrefix(a.Text, "-e") && len(a.Text) > 2:
			w.namedFiles(c, k, "", makeWord("*."+a.cut(2).raw, false, false, "", a.Pos))
		case !strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, `^$\(|`):
			w.namedFiles(c, k, "", makeWord(regexpAsPattern(a.raw), false, false, "", a.Pos))
		}
		words, runs := execOfFD(a)
		if !runs {
			continue
		}
		end := i + 1
		for end < len(args) && !args[end].Is(";") {
			end++
		}
		words = append(words, w.foundByFD(k, args[:i], args[i+1:end])...)
		i = end
		w.run(c.by(Wrapper, "fd", k.at), call{words: words, at: words[0].Pos.Offset, outside: true, hidden: true})
	}
}

// execOfFD reports whether an argument of fd is an option that runs a command, and returns the word attached to it.
func execOfFD(a Word) (attached []Word, runs bool) {
	name, _, assigned := strings.Cut(a.Text, "=")
	long, short := name == "--exec" || name == "--exec-batch", strings.IndexAny(a.Text, "xX")
	switch {
	case !long && (short < 0 || !strings.HasPrefix(a.Text, "-") || strings.HasPrefix(a.Text, "--")):
		return nil, false
	case assigned:
		return []Word{a.cut(len(name) + 1)}, true
	case !long && short+1 < len(a.Text):
		return []Word{a.cut(short + 1)}, true
	}
	return nil, true
}

// foundByFD returns a command's words with a found file in place of its placeholders, or at the end if it has none.
func (w *walker) foundByFD(k call, search, given []Word) (words []Word) {
	names, replaced := fdNames(search), false
	for _, word := range given {
		if word.Is("{}") && len(names) > 0 {
			words, replaced = append(words, namedWords(names, false, word.Source, word.Pos)...), true
			continue
		}
		for _, mark := range []string{"{}", "{/}", "{//}", "{.}", "{/.}"} {
			if strings.Contains(word.raw, mark) {
				word = makeWord(strings.ReplaceAll(word.raw, mark, unknown), false, false, word.Source, word.Pos)
				replaced = true
			}
		}
		words = append(words, word)
	}
	switch {
	case replaced:
		return words
	case len(names) > 0:
		return append(words, namedWords(names, false, "", w.place(k.at))...)
	}
	return append(words, makeWord(unknown, false, true, "", w.place(k.at)))
}
