package action

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// with returns the secrets plus environment variables.
func (s Secrets) with(names []string) Secrets {
	s.Env = slices.Concat(s.Env, names)
	return s
}

// names reports whether a secret with this name may be used: it is listed in Env or defined in the file.
func (s Secrets) names(name string) bool {
	if slices.Contains(s.Env, name) {
		return true
	}
	file, err := s.read()
	_, ok := file[name]
	return err == nil && ok
}

// values returns the secrets' current values. Its errors contain no values.
func (s Secrets) values(names []string) (map[string]string, error) {
	if len(names) == 0 {
		return map[string]string{}, nil
	}
	file, err := s.read()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range names {
		value, ok := file[name]
		if !ok && slices.Contains(s.Env, name) {
			value, ok = os.LookupEnv(name)
		}
		if !ok {
			return nil, fmt.Errorf("%s is not set, neither in the allowed environment variables nor in the secrets file", name)
		}
		found[name] = value
	}
	return found, nil
}

var secretLine = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// read parses the file: lines of NAME=value, optionally with export; # begins a comment. A value may be quoted; escapes
// in quotes have no meaning.
func (s Secrets) read() (map[string]string, error) {
	if s.File == "" {
		return map[string]string{}, nil
	}
	text, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("reading secrets: %w", err)
	}
	found := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := secretLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("reading secrets: %s:%d: expected NAME=value", s.File, i+1)
		}
		value := strings.TrimSpace(m[2])
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		found[m[1]] = value
	}
	return found, nil
}

// shortest is the minimum length of a secret to search for in output. Shorter text may occur by chance.
const shortest = 6

// hideSecrets replaces secrets with their names, in every common encoding.
func hideSecrets(text string, secrets map[string]string) string {
	names := lo.Keys(secrets)
	slices.SortFunc(names, func(a, b string) int { // longest first, because one may contain another
		return len(secrets[b]) - len(secrets[a])
	})
	for _, name := range names {
		value := secrets[name]
		if len(value) < shortest {
			continue
		}
		inJSON, _ := json.Marshal(value) //nolint:errchkjson // a string
		forms := []string{value, string(inJSON[1 : len(inJSON)-1]), url.QueryEscape(value), url.PathEscape(value)}
		if at, err := url.Parse(value); err == nil && at.Host != "" && len(at.RequestURI()) >= shortest {
			forms = append(forms, at.RequestURI()) // in a URL, this part contains the secret
		}
		for _, form := range forms {
			text = strings.ReplaceAll(text, form, "${"+name+"}")
		}
	}
	return text
}
