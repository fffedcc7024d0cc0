package action

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// DefaultInherit returns the names of variables that processes inherit by default: locations of programs and user
// files, language and time zone. None of them is a secret.
func DefaultInherit() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"}
}

// process checks the settings that commands and shells share.
func (p *problems) process(env map[string]string, inherit []string, timeout time.Duration, most int) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			p.say("env", "%q is not a valid variable name", name)
		case strings.Contains(env[name], "\x00"):
			p.say("env."+name, "the value contains a NUL byte")
		case slices.Contains(VariableNames(), name):
			p.say("env."+name, "the name is reserved for a variable that every action gets: choose another one")
		}
	}
	for _, pattern := range inherit {
		if _, err := path.Match(pattern, ""); err != nil {
			p.say("inherit", "%q: %v", pattern, err)
		}
	}
	p.times(map[string]time.Duration{"timeout": timeout})
	p.size("max_bytes", most)
}

// environ returns a process's sorted environment, and its secrets. Secrets are the inherited variables that are not in
// DefaultInherit.
func environ(r *Request, env map[string]string, inherit []string) (all []string, secrets map[string]string) {
	values, secrets := map[string]string{}, map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case matchesAny(DefaultInherit(), name):
		case matchesAny(inherit, name):
			secrets[name] = value
		default:
			continue
		}
		values[name] = value
	}
	maps.Copy(values, env)
	maps.Copy(values, r.Variables.environ())
	if r.IdempotencyKey != "" {
		values[keyVariable] = r.IdempotencyKey
	}
	return slices.Sorted(maps.Values(lo.MapValues(values, func(value, name string) string { return name + "=" + value }))), secrets
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
}
