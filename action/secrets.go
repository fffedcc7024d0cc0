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

// with returns the secrets with more names of the environment.
func (s Secrets) with(names []string) Secrets {
	s.Env = slices.Concat(s.Env, names)
	return s
}

// names reports whether a name may be used: it is listed, or in the file.
func (s Secrets) names(name string) bool {
	if slices.Contains(s.Env, name) {
		return true
	}
	file, err := s.read()
	_, ok := file[name]
	return err == nil && ok
}

// values looks up secrets, as they are now. An error has no value in it.
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
			return nil, fmt.Errorf("%s is not set: neither in the environment, as one of those that may be used, nor in the file of secrets", name)
		}
		found[name] = value
	}
	return found, nil
}

var secretLine = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// read reads the file: lines of NAME=value, with or without export, of which # begins a comment. A value may stand in
// quotes, which say nothing else.
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
			return nil, fmt.Errorf("reading secrets: %s:%d: this is not NAME=value", s.File, i+1)
		}
		value := strings.TrimSpace(m[2])
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		found[m[1]] = value
	}
	return found, nil
}

// shortest is how long a secret must be to be looked for in what comes back: a shorter one stands there by chance.
const shortest = 6

// hideSecrets puts the names of secrets in the place of their values, however they are written.
func hideSecrets(text string, secrets map[string]string) string {
	names := lo.Keys(secrets)
	slices.SortFunc(names, func(a, b string) int { // the longest first: one may be part of another
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
			forms = append(forms, at.RequestURI()) // of a URL, that is where the secret is
		}
		for _, form := range forms {
			text = strings.ReplaceAll(text, form, "${"+name+"}")
		}
	}
	return text
}
