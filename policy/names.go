package policy

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/library"
)

// NamesRule reports whether a name in a file refers to a hook's rule. The name is the hook's name, or the ID alone for a
// rule in the user's own files. Library rules need the full name, such as library:safe-shell/readable.
func NamesRule(name, hook string) bool {
	return name == hook || !strings.HasPrefix(hook, library.Prefix) && strings.HasSuffix(hook, "/"+name)
}

// UnknownRule returns the error text for a name that refers to no rule. What describes the expected kind of rule.
func UnknownRule(what, name string, rules []Rule) string {
	known := lo.Map(rules, func(r Rule, _ int) string { return r.fileName() })
	id := name[strings.LastIndex(name, "/")+1:]
	if meant, ok := lo.Find(known, func(one string) bool { return strings.HasPrefix(one, library.Prefix) && strings.HasSuffix(one, "/"+id) }); ok {
		return fmt.Sprintf("unknown %s %q (did you mean %q?)", what, name, meant)
	}
	return yamlfile.Unknown(what, name, known)
}

// fileName returns the shortest name that refers to the rule in a file.
func (r Rule) fileName() string {
	if strings.HasPrefix(r.Policy, library.Prefix) {
		return r.Hook()
	}
	return r.ID
}
