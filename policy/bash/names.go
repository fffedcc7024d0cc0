package bash

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"
)

// Some programs print names of files that exist: ls, find, git ls-files. The walker follows such names as patterns:
// find a prints a/**. A name may contain a blank, at which the shell splits it; see [Word.Split].

// list records that a command prints only names that match the patterns, one a line.
func (o *output) list(names []string) {
	if o == nil {
		return
	}
	o.names = append(o.names, names...)
	if !strings.HasSuffix(o.text, unknown) {
		o.text += unknown
	}
}

// onlyNames returns the patterns of the names in the output. It returns nil if the output may contain anything else.
func (o *output) onlyNames() []string {
	if o.other || len(o.names) > maxPossible {
		return nil
	}
	return lo.Uniq(o.names)
}

// print records what a program writes to its output, as far as that is known.
func (w *walker) print(c ctx, k call) {
	if c.out == nil {
		return
	}
	path := k.words[0].raw
	shown := !strings.Contains(path, "/") || strings.HasPrefix(path, "/bin/") || strings.HasPrefix(path, "/usr/bin/")
	if shown && !slices.ContainsFunc(k.redirs, func(r Redirect) bool { return strings.HasSuffix(r.Op, "&") || strings.HasPrefix(r.Op, "&") }) {
		if names := w.printedNames(c, k); len(names) > 0 {
			c.out.list(names)
			return
		}
		if text := w.printedText(c, k); text != "" {
			c.out.add(text + "\n")
			return
		}
	}
	c.out.lose()
}

// printedNames returns the patterns of the file names that a program prints; nil if it may print anything else.
func (w *walker) printedNames(c ctx, k call) []string {
	args := k.args()
	switch k.name {
	case "ls":
		return lsNames(args)
	case "find":
		roots, tests := findRoots(args)
		return findNames(roots, tests)
	case "git":
		if len(args) > 0 && args[0].Is("ls-files") &&
			onlyFlags(flagsOf(args[1:]), "cdmosz", "cached modified others exclude-standard deleted") && staysBelow(args) {
			return []string{"**"}
		}
		if len(args) > 1 && args[0].Is("diff") && hasFunc(args, func(a Word) bool { return a.Is("--name-only") }) &&
			onlyFlags(flagsOf(args[1:]), "z", "name-only cached staged") && staysBelow(args) {
			return []string{"**"}
		}
	case "go":
		if len(args) > 0 && args[0].Is("list") {
			return packageNames(args[1:])
		}
	case "rg":
		if hasFunc(args, func(a Word) bool { return a.Is("--files") }) && staysBelow(args) { // other options leave names out
			return []string{"**"}
		}
		options := slices.IndexFunc(args, func(a Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if options > 0 && onlyFlags(args[:options], "lwiFSsu", "") && strings.Contains(args[0].Text, "l") {
			return below(args[options+1:])
		}
	case "fd", "fdfind":
		return fdNames(args)
	case "sort", "uniq", "head", "tail", "tac", "shuf", "cat":
		if onlyFlags(args, "urnq0123456789", "unique reverse") {
			return c.in.names
		}
	case "grep", "egrep", "fgrep":
		options := slices.IndexFunc(args, func(a Word) bool { return !strings.HasPrefix(a.Text, "-") })
		if options >= 0 && options == len(args)-1 && onlyFlags(args[:options], "vEFPiwxz", "") {
			return c.in.names
		}
		if options >= 0 && onlyFlags(args[:options], "rlLEFPiwsI", "") &&
			hasFunc(args[:options], func(a Word) bool { return strings.ContainsAny(a.Text, "lL") }) {
			return below(args[options+1:])
		}
	}
	return nil
}

// flagsOf returns the words that begin with a dash, before "--".
func flagsOf(words []Word) []Word {
	return lo.Filter(words, func(a Word, _ int) bool { return strings.HasPrefix(a.Text, "-") && !a.Is("--") })
}

// staysBelow reports whether all words are known and none leads to a folder above.
func staysBelow(words []Word) bool {
	return !hasFunc(words, func(a Word) bool {
		return a.Kind == Partial || strings.Contains(a.Text, "../") || strings.HasSuffix(a.Text, "..") ||
			strings.HasPrefix(a.Text, ":") || strings.HasPrefix(a.Text, "/")
	})
}

// onlyFlags reports whether all words are known options without a value: letters in short, or names in long.
func onlyFlags(words []Word, short, long string) bool {
	return !hasFunc(words, func(a Word) bool {
		name, isLong := strings.CutPrefix(a.Text, "--")
		if isLong {
			return a.Kind != Literal || name == "" || !slices.Contains(strings.Fields(long), name)
		}
		return a.Kind != Literal || len(a.Text) < 2 || a.Text[0] != '-' || strings.Trim(a.Text[1:], short) != ""
	})
}

// isPlace reports whether a word is a path without characters that are special in patterns.
func isPlace(a Word) bool {
	return a.Kind == Literal && !a.here && a.Text != "" && a.Text[0] != '-' && !strings.ContainsAny(a.Text, `*?[](){}!\`)
}

// below returns patterns for all files below the folders.
func below(folders []Word) []string {
	if len(folders) == 0 {
		return []string{"**"} // names without ./ before them
	}
	var names []string
	for _, f := range folders {
		if !isPlace(f) && (f.Kind != Pattern || !isSoundPattern(f.Text)) {
			return nil
		}
		names = append(names, strings.TrimSuffix(f.Text, "/")+"/**")
	}
	return names
}

// lsNames returns the patterns of the names that ls prints.
func lsNames(args []Word) []string {
	options := slices.IndexFunc(args, func(a Word) bool { return !strings.HasPrefix(a.Text, "-") })
	if options < 0 {
		options = len(args)
	}
	if !onlyFlags(args[:options], "1tSrvUXdcuaA", "") {
		return nil
	}
	operands := args[options:]
	itself := hasFunc(args[:options], func(a Word) bool { return strings.Contains(a.Text, "d") })
	var names []string
	files := !hasFunc(operands, func(a Word) bool { return a.Kind != Pattern || !strings.Contains(baseName(a.Text), ".") }) // *.go names no folders
	if !itself && (!files || len(operands) == 0) {
		names = []string{"*"}
		if hasFunc(args[:options], func(a Word) bool { return strings.ContainsAny(a.Text, "aA") }) {
			names = append(names, ".*")
		}
	}
	for _, o := range operands {
		if !isPlace(o) && (o.Kind != Pattern || o.here || !isSoundPattern(o.Text) || strings.HasPrefix(o.Text, "-")) {
			return nil
		}
		if itself || o.Kind == Pattern || len(operands) > 1 || !staysBelow([]Word{o}) {
			names = append(names, o.Text)
		}
		if !itself && !files && (len(operands) > 1 || o.Kind == Pattern) {
			names = append(names, o.Text+":") // a folder's heading
		}
	}
	return names
}

// fdNames returns the patterns of the names that fd finds. It returns nil if they may be anywhere.
func fdNames(args []Word) []string {
	elsewhere := hasFunc(args, func(a Word) bool {
		name, isLong := strings.CutPrefix(a.Text, "--")
		switch name, _, _ = strings.Cut(name, "="); {
		case isLong:
			return slices.Contains([]string{"absolute-path", "base-directory", "search-path", "format", "list-details"}, name)
		case strings.HasPrefix(a.Text, "-"):
			return strings.ContainsAny(a.Text, "aCl")
		}
		return false
	})
	if elsewhere || !staysBelow(args) {
		return nil
	}
	return []string{"**"}
}

// echoNames returns the words of echo if the shell replaces some of them by names of files, and all can be names.
func echoNames(args []Word) []string {
	if !hasFunc(args, func(a Word) bool { return a.Kind == Pattern }) {
		return nil
	}
	var names []string
	for i, a := range args {
		if i == 0 && a.Is("-n") {
			continue
		}
		if !isPlace(a) && (a.Kind != Pattern || a.here || !isSoundPattern(a.Text)) {
			return nil
		}
		names = append(names, a.Text)
	}
	return names
}

// findRoots returns the folders that find searches, and the expression.
func findRoots(args []Word) (roots, expression []Word) {
	for i, a := range args {
		if a.Kind != Partial && len(a.Text) > 1 && a.Text[0] == '-' || a.Is("(") || a.Is("!") || a.Is(",") {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

// findNames returns the patterns of the files that find finds. It returns nil if find follows links or may print other text.
func findNames(roots, expression []Word) []string {
	if len(roots) == 0 {
		roots = []Word{literalWord(".", Pos{})}
	}
	names := below(roots)
	narrow, pattern, negated := true, "", false
	for i := 0; i < len(expression); i++ {
		test := expression[i]
		value := Word{}
		if i+1 < len(expression) {
			value = expression[i+1]
		}
		switch {
		case test.Kind != Literal:
			return nil
		case test.Is("-name"):
			if !negated {
				pattern = value.Text
				narrow = narrow && value.Kind == Literal && isSoundPattern(pattern)
			}
			i++
		case test.Is("-iname"), test.Is("-path"), test.Is("-ipath"), test.Is("-wholename"), test.Is("-regex"), test.Is("-iregex"), test.Is("-newer"):
			i++
		case test.Is("-printf"):
			return nil
		case findTakesOne(test.Text):
			i++
		case test.Is("!"), test.Is("-not"):
			negated = true
			continue
		case test.Is("-o"), test.Is("-or"), test.Is("("), test.Is(")"), test.Is("-prune"), test.Is(","):
			narrow = false
		case test.Is("-a"), test.Is("-and"), test.Is("-print"), test.Is("-print0"), test.Is("-empty"), test.Is("-true"), test.Is("-mount"), test.Is("-xdev"),
			test.Is("-depth"), test.Is("-executable"), test.Is("-readable"), test.Is("-writable"), test.Is("-quit"), test.Is("-daystart"):
		default:
			return nil
		}
		negated = false
	}
	if !narrow || pattern == "" || strings.Trim(pattern, "*") == "" {
		return names
	}
	var narrowed []string
	for _, name := range names {
		narrowed = append(narrowed, name+"/"+pattern)
	}
	return narrowed
}

// packageNames returns the packages that go list prints, as they are written on the line. The go command takes them,
// and the packages are not files.
func packageNames(args []Word) []string {
	names := []string{}
	for _, a := range args {
		switch {
		case a.Is("-e"), a.Is("-deps"), a.Is("-test"), a.Is("-find"):
		case isPlace(a) && !strings.Contains(a.Text, "="):
			names = append(names, a.Text)
		default:
			return nil
		}
	}
	if len(names) == 0 {
		return []string{"."}
	}
	return names
}

// printedText returns text that stands for a program's output where the exact text does not matter: a new temporary
// file, the folders of Go, the place of a program. It returns "" if the output is unknown.
func (w *walker) printedText(c ctx, k call) string {
	args := k.args()
	switch k.name {
	case "mktemp":
		return temporaryName(c, args)
	case "which":
		if len(args) == 1 && isPlace(args[0]) && !strings.Contains(args[0].Text, "/") && !isBuiltin(args[0].Text) {
			return "/usr/bin/" + args[0].Text
		}
	case "go":
		if len(args) == 2 && args[0].Is("env") && args[1].Kind == Literal {
			if _, set := c.st.vars[args[1].Text]; !set {
				return goFolders[args[1].Text]
			}
		}
	case "git":
		if len(args) == 2 && args[0].Is("rev-parse") && args[1].Is("--show-toplevel") && w.atStart(c) {
			return w.repository
		}
		if len(args) > 0 && printsCommit(args[0].Text, args[1:]) {
			return "HEAD"
		}
	case "date":
		if len(args) == 0 || len(args) == 1 && args[0].Kind == Literal && dateFormat().MatchString(args[0].Text) {
			return "now"
		}
	case "uname", "nproc", "arch", "whoami":
		if onlyFlags(args, "asnrvmpio", "all") {
			return k.name
		}
	}
	return ""
}

// printsCommit reports whether git prints a commit, a branch or a tag. The text HEAD stands for it.
func printsCommit(sub string, args []Word) bool {
	if hasFunc(args, func(a Word) bool {
		return a.Kind != Literal || strings.Contains(a.Text, "..") || !commitWord().MatchString(a.Text)
	}) {
		return false
	}
	switch flags := flagsOf(args); sub {
	case "rev-parse":
		return len(args) > len(flags) && onlyFlags(flags, "q", "short verify abbrev-ref")
	case "merge-base":
		return onlyFlags(flags, "", "fork-point")
	case "describe":
		return onlyFlags(flags, "", "tags always dirty long all")
	case "branch":
		return len(args) == 1 && args[0].Is("--show-current")
	}
	return false
}

var (
	commitWord = lazyRegexp(`^(--?[a-z-]+|[A-Za-z0-9_][A-Za-z0-9_./@{}^~-]*)$`)
	dateFormat = lazyRegexp(`^(-u|-I|-Is|-Iseconds|\+([A-Za-z0-9_.:-]|%[YmdHMSsFTjyNuVaAbBeIpZz])*)$`)
)

// atStart reports whether the shell is in the directory in which the line starts, and git has no settings for another
// repository.
func (w *walker) atStart(c ctx) bool {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CEILING_DIRECTORIES"} {
		if _, set := c.st.vars[name]; set {
			return false
		}
	}
	return len(c.st.dirs) == 1 && c.st.dirs[0] == w.start
}

// goFolders holds the default folders of the go command.
var goFolders = map[string]string{
	"GOPATH": "~/go", "GOMODCACHE": "~/go/pkg/mod", "GOROOT": "/usr/local/go", "GOCACHE": "~/.cache/go-build",
	"GOTOOLDIR": "/usr/local/go/pkg/tool",
}

// temporaryName returns a name in place of the new one that mktemp prints.
func temporaryName(c ctx, args []Word) string {
	dir, inDir, template := "/tmp", true, "tmp.XXXXXXXXXX"
	if set, found := c.st.vars["TMPDIR"]; found {
		dir = set.text
	}
	g := parseOptions(args, "duqtp>V", "directory dry-run quiet suffix: tmpdir?")
	if len(g.operands) > 0 {
		template, inDir = g.operands[0].Text, g.has("t", "p", "tmpdir")
	}
	for _, o := range g.options {
		if (o.name == "p" || o.name == "tmpdir") && o.given {
			dir = o.value.raw
		}
	}
	if g.doubt || len(g.operands) > 1 || g.has("u", "dry-run", "suffix") || !isPlace(literalWord(dir, Pos{})) || !isKnown(dir) ||
		len(g.operands) == 1 && !isPlace(g.operands[0]) {
		return ""
	}
	if !inDir {
		return template
	}
	return strings.TrimSuffix(dir, "/") + "/" + template
}

// namedWords returns a word for each pattern of names. Split says whether blanks in a name end the word.
func namedWords(names []string, split bool, source string, pos Pos) []Word {
	var words []Word
	for _, name := range names {
		word := makeWord(name, true, true, source, pos)
		word.Split = split
		words = append(words, word)
	}
	return words
}

// foundIn returns a word with a found name in place of each mark.
func foundIn(word Word, mark, name string, split bool) Word {
	before, after, _ := strings.Cut(word.raw, mark)
	whole := !strings.ContainsAny(before+after, `*?[](){}!\`) && !strings.Contains(after, mark) && isKnown(word.raw)
	if strings.HasPrefix(name, "**") && before != "" && !strings.HasSuffix(before, "/") ||
		strings.HasSuffix(name, "**") && after != "" && after[0] != '/' || !whole {
		return makeWord(strings.ReplaceAll(word.raw, mark, unknown), false, false, word.Source, word.Pos)
	}
	found := makeWord(before+name+after, true, true, word.Source, word.Pos)
	found.Split = split
	return found
}

// lazyRegexp returns a function that compiles the pattern when it is first called, so that programs that do not need it start faster.
func lazyRegexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
