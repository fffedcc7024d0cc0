package rules

// Rule reports whether a call to this tool is denied, and gives the reason in one sentence. The reason is empty if the
// call is not denied. A Rule never changes, so goroutines may call it concurrently.
type Rule func(tool string, args Args) (deny bool, reason string)

// row is one line of a policy: calls to the tool are allowed only if the condition holds.
type row struct {
	tool   string
	only   condition
	reason string // the reason for denying other calls, for the model and the log
}

// newRule returns a policy with the given rows. A tool may have several rows. A tool without a row is allowed.
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

// condition reports whether a call's arguments are acceptable.
type condition func(args Args) bool

// allowNone accepts no call.
func allowNone(Args) bool { return false }

// everyText returns a condition that is true if the argument is given and each of its texts is accepted.
func everyText(argument string, accept func(string) bool) condition {
	return func(args Args) bool {
		texts, ok := args.Texts(argument)
		return ok && len(texts) > 0 && allTexts(texts, accept)
	}
}

// ifGiven returns a condition that is true if the argument is absent, null or empty, or if each of its texts is
// accepted.
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
