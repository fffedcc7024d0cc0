package policy

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/library"
)

// NamesRule reports whether a name in a file means the rule of a hook: the name of the hook, or, for a rule of the user's own
// files, the id alone. Rules of the library have their full name only, such as library:safe-shell/readable.
func NamesRule(name, hook string) bool {
	return name == hook || !strings.HasPrefix(hook, library.Prefix) && strings.HasSuffix(hook, "/"+name)
}

// UnknownRule returns the text of an error about a name that means none of the rules. What says what was looked for, such as rule.
func UnknownRule(what, name string, rules []Rule) string {
	known := lo.Map(rules, func(r Rule, _ int) string { return r.fileName() })
	id := name[strings.LastIndex(name, "/")+1:]
	if meant, ok := lo.Find(known, func(one string) bool { return strings.HasPrefix(one, library.Prefix) && strings.HasSuffix(one, "/"+id) }); ok {
		return fmt.Sprintf("unknown %s %q (did you mean %q?)", what, name, meant)
	}
	return yamlfile.Unknown(what, name, known)
}

// fileName returns the shortest name that means the rule in a file.
func (r Rule) fileName() string {
	if strings.HasPrefix(r.Policy, library.Prefix) {
		return r.Hook()
	}
	return r.ID
}
