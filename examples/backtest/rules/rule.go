package rules

// Rule says whether a call of this tool is denied, and in a sentence why. The reason of a call that is not
// denied is empty. A Rule never changes: it may be asked by many goroutines at once.
type Rule func(tool string, args Args) (deny bool, reason string)

// row is one line of a policy: calls of the tool are allowed only if the condition holds.
type row struct {
	tool   string
	only   condition
	reason string // why others are denied, for the model and for the log
}

// newRule makes a policy of its rows. A tool may have several. A tool that has none is allowed.
func newRule(rows ...row) Rule {
	return func(tool string, args Args) (bool, string) {
		for _, r := range rows {
			if r.tool == tool && !r.only(args) {
				return true, r.reason
			}
		}
		return false, ""
	}
}

// condition is what must hold for the arguments of a call.
type condition func(args Args) bool

// allowNone holds for no call.
func allowNone(Args) bool { return false }

// everyText holds when the argument is given and each of its texts is accepted.
func everyText(argument string, accept func(string) bool) condition {
	return func(args Args) bool {
		texts, ok := args.Texts(argument)
		return ok && len(texts) > 0 && allTexts(texts, accept)
	}
}

// ifGiven holds when the argument is absent, null or empty, and else when each of its texts is accepted.
func ifGiven(argument string, accept func(string) bool) condition {
	return func(args Args) bool {
		texts, ok := args.Texts(argument)
		return ok && allTexts(texts, accept)
	}
}

func allTexts(texts []string, accept func(string) bool) bool {
	for _, text := range texts {
		if !accept(text) {
			return false
		}
	}
	return true
}
