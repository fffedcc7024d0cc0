package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The rules.
const (
	ruleComment    = "comment"
	ruleWord       = "word"
	rulePhrase     = "phrase"
	ruleCase       = "case"
	ruleOneWord    = "one-word"
	ruleParticiple = "participle"
)

// A finding is one place that violates a rule.
type finding struct {
	Rule string
	At   token.Position
	Text string // the problem, and the text to write instead
}

// oneWordShare is the maximum share of unexported functions with one-word names. Each package may have one more.
const oneWordShare = 0.15

// checkFunctions returns the findings in the function and method names and comments of one package. It ignores tests,
// because their names describe what they test.
func checkFunctions(fset *token.FileSet, files []*ast.File) []finding {
	p := packageNames{spellings: map[string]map[string]token.Position{}}
	for _, file := range files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && !slices.Contains([]string{"main", "init", "_"}, fn.Name.Name) {
				p.check(fset, fn)
			}
		}
	}
	for _, spellings := range p.spellings {
		if len(spellings) < 2 {
			continue
		}
		sorted := slices.Sorted(maps.Keys(spellings))
		at := spellings[sorted[len(sorted)-1]]
		p.found = append(p.found, finding{ruleCase, at, "differ only in case: " + strings.Join(sorted, ", ")})
	}
	if spare := 1 + int(oneWordShare*float64(p.unexported)); len(p.oneWord) > spare {
		p.found = append(p.found, p.oneWord[spare:]...)
	}
	return p.found
}

// packageNames collects a package's function names and the findings in them.
type packageNames struct {
	found      []finding
	spellings  map[string]map[string]token.Position // by the name in lower case
	oneWord    []finding                            // names of unexported functions
	unexported int
}

// check adds one function.
func (p *packageNames) check(fset *token.FileSet, fn *ast.FuncDecl) {
	name, at := fn.Name.Name, fset.Position(fn.Name.Pos())
	if text, broken := checkComment(fn); broken {
		p.found = append(p.found, finding{ruleComment, fset.Position(fn.Pos()), text})
	}
	folded := strings.ToLower(name)
	if p.spellings[folded] == nil {
		p.spellings[folded] = map[string]token.Position{}
	}
	if _, known := p.spellings[folded][name]; !known {
		p.spellings[folded][name] = at
	}
	if !fn.Name.IsExported() && fn.Recv == nil {
		p.unexported++
		if len(splitName(name)) == 1 {
			text := fmt.Sprintf("func %s: one word is vague; add the object (%[1]sStep, %[1]sName, …)", name)
			p.oneWord = append(p.oneWord, finding{ruleOneWord, at, text})
		}
	}
	if isParticiple(name) && !returnsBool(fn) && name != "Done" { // Done belongs to context.Context
		p.found = append(p.found, finding{ruleParticiple, at, fmt.Sprintf("func %s: name the action with a verb, the value with a noun", name)})
	}
}

// checkComment reports whether a function's comment does not begin with its name and a verb.
func checkComment(fn *ast.FuncDecl) (text string, broken bool) {
	words := strings.Fields(fn.Doc.Text())
	if len(words) == 0 {
		return "", false
	}
	if words[0] != fn.Name.Name {
		return fmt.Sprintf("comment of %s: start with %q and a verb", fn.Name.Name, fn.Name.Name), true
	}
	if len(words) > 1 && isVerb(words[1]) {
		return "", false
	}
	begin := strings.Join(words[:min(2, len(words))], " ")
	return fmt.Sprintf("comment of %s: %q is not a verb; say what it returns, reports, records, …", fn.Name.Name, begin), true
}

// noVerbs lists words that end in s but are not verbs, or are verbs that do not describe a function.
var noVerbs = []string{"is", "was", "has", "as", "its", "this", "does", "us", "always"}

// adverbs lists words that may come between the name and the verb.
var adverbs = []string{"also", "never", "only", "always", "atomically", "then"}

// isVerb reports whether a word can be the verb of "Name verb …": third person, such as
// returns, or an auxiliary verb.
func isVerb(word string) bool {
	word = strings.TrimRight(word, ",.;:")
	switch {
	case slices.Contains([]string{"must", "may", "can", "cannot"}, word), slices.Contains(adverbs, word):
		return true
	case slices.Contains(noVerbs, word), strings.HasSuffix(word, "ss"):
		return false
	}
	return strings.HasSuffix(word, "s") && strings.ToLower(word) == word
}

// splitName returns the words in a camel-case name.
func splitName(name string) []string {
	var words []string
	start := 0
	runes := []rune(name)
	for i := 1; i < len(runes); i++ {
		lowerToUpper := unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1])
		endOfInitials := unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if lowerToUpper || endOfInitials || runes[i] == '_' {
			words, start = append(words, strings.Trim(string(runes[start:i]), "_")), i
		}
	}
	return append(words, strings.Trim(string(runes[start:]), "_"))
}

// irregular lists participles and past tenses that do not end in -ed.
var irregular = []string{
	"begun", "bound", "broken", "built", "chosen", "done", "fallen", "found", "given", "gone", "held", "hidden", "kept",
	"known", "left", "lost", "made", "meant", "met", "said", "seen", "sent", "shown", "sought", "sent", "spent", "stood",
	"taken", "told", "took", "torn", "went", "wrote", "written",
}

// notParticiples lists nouns and verbs that end in -ed.
var notParticiples = []string{
	"bleed", "elapsed", "embed", "exceed", "feed", "need", "proceed", "red", "seed", "shed", "speed", "succeed",
}

// isParticiple reports whether a name is a single participle: settled, took. Names such as readSealed or closedBody
// also contain a verb or a noun.
func isParticiple(name string) bool {
	words := splitName(name)
	if len(words) != 1 {
		return false
	}
	word := strings.ToLower(words[0])
	if slices.Contains(notParticiples, word) {
		return false
	}
	return strings.HasSuffix(word, "ed") && len(word) > 4 || slices.Contains(irregular, word)
}

// returnsBool reports whether a function's last result is a bool.
func returnsBool(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) == 0 {
		return false
	}
	results := fn.Type.Results.List
	ident, ok := results[len(results)-1].Type.(*ast.Ident)
	return ok && ident.Name == "bool"
}

// stumbling lists words and phrases that comments, messages and documents avoid, with their replacements.
var stumbling = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|whoever|whomever)\b`), "name the subject: the agent, the caller, the process, a person"},
	{regexp.MustCompile(`(?i)\b(which|that) there (is|are) (not|none)\b`), `write "unknown" or "undefined"`},
	{regexp.MustCompile(`(?i)\bof which there (is|are)\b`), "use a plain clause"},
	{regexp.MustCompile(`(?i)\bwhat is left of\b`), "name what remains"},
	{regexp.MustCompile(`(?i)\bas it counts\b`), `write "effective"`},
	{regexp.MustCompile(`(?i)\b(a|the|needs?|wants?) (a )?(person's )?yes\b`), `write "approval"`},
	{regexp.MustCompile(`(?i)\bthat is none\b`), "say what is wrong"},
	{regexp.MustCompile(`(?i)\b(is|are) no more\b`), "use a plain clause"},
	{regexp.MustCompile(`(?i)\bonce more\b`), `write "again"`},
	{regexp.MustCompile(`(?i)\banew\b`), `write "again"`},
}

// phrases lists genitives and empty pronouns that plain English replaces by a possessive, a compound or the noun itself.
var phrases = regexp.MustCompile(`(?i)\b(those of|that of the|and of|or of|of a run|of the run|of a call|` +
	`the (events|hooks|texts|calls|form) of|what a|a (text|call) that|are those|and those)\b`)

// phraseShare is the maximum share of comment lines with a phrase.
const phraseShare = 0.002

// checkPhrases returns the comment lines with a phrase beyond the share that a folder may have. It skips the output
// of examples.
func checkPhrases(fset *token.FileSet, files []*ast.File) []finding {
	var found []finding
	lines := 0
	for _, file := range files {
		for _, group := range file.Comments {
			if strings.HasPrefix(group.Text(), "Output:") {
				continue
			}
			at := fset.Position(group.Pos())
			for i, line := range strings.Split(strings.TrimSuffix(group.Text(), "\n"), "\n") {
				lines++
				for _, phrase := range phrases.FindAllString(line, -1) {
					at := token.Position{Filename: at.Filename, Line: at.Line + i}
					found = append(found, finding{rulePhrase, at, fmt.Sprintf("%q: use a possessive, a compound or the noun", phrase)})
				}
			}
		}
	}
	return found[min(len(found), int(math.Round(phraseShare*float64(lines)))):]
}

// checkWords returns the stumbling words in a text that starts at the given line of a file.
func checkWords(file string, first int, text string) []finding {
	var found []finding
	for i, line := range strings.Split(text, "\n") {
		for _, s := range stumbling {
			if word := s.pattern.FindString(line); word != "" {
				found = append(found, finding{ruleWord, token.Position{Filename: file, Line: first + i}, fmt.Sprintf("%q: %s", word, s.instead)})
			}
		}
	}
	return found
}

// checkTexts returns the stumbling words in a file's comments and string literals.
func checkTexts(fset *token.FileSet, file *ast.File) []finding {
	var found []finding
	for _, group := range file.Comments {
		for _, comment := range group.List {
			at := fset.Position(comment.Pos())
			found = append(found, checkWords(at.Filename, at.Line, comment.Text)...)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			at := fset.Position(literal.Pos())
			found = append(found, checkWords(at.Filename, at.Line, text)...)
		}
		return true
	})
	return found
}
