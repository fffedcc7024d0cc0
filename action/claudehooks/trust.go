package claudehooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var word = regexp.MustCompile(`[^\s"'` + "`" + `;|&<>()=]+`)

// scriptsOf returns the files that a handler's command names, as far as the text shows them.
func (s *Set) scriptsOf(h *handler) (out []string) {
	text := strings.Join(append([]string{h.command}, h.args...), " ")
	text = strings.NewReplacer("$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$CLAUDE_PLUGIN_ROOT", "${CLAUDE_PLUGIN_ROOT}").Replace(text)
	text = strings.NewReplacer(`}"/`, "}/", `}'/`, "}/").Replace(text)
	for _, name := range word.FindAllString(s.expand(h, text), -1) {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(homeDir(), rest)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.options.Dir, name)
		}
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && isScript(name, info) && !isSystem(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// isScript reports whether a file is a program, and not data such as a log to which the command appends.
func isScript(path string, info os.FileInfo) bool {
	if info.Mode()&0o111 != 0 || slices.Contains(scriptNames, filepath.Ext(path)) {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return true // loading reports the error
	}
	defer f.Close()
	head := make([]byte, 2)
	n, _ := f.Read(head)
	return string(head[:n]) == "#!"
}

var scriptNames = strings.Fields(".sh .bash .zsh .fish .py .js .mjs .cjs .ts .mts .rb .pl .php .lua .ps1 .jq .awk .sed")

// isSystem reports whether a path belongs to the system, and not to a user or a project.
func isSystem(path string) bool {
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/etc/", "/dev/", "/nix/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

func hashFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// hashScripts records the hashes of the scripts that handlers from a repository name.
func (s *Set) hashScripts(list []*handler) error {
	for _, h := range list {
		if !h.isProject || h.kind != kindCommand {
			continue
		}
		h.scripts = map[string]string{}
		for _, path := range s.scriptsOf(h) {
			hash, err := hashFile(path)
			if err != nil {
				return fmt.Errorf("reading a script that %s names: %w", h.file, err)
			}
			h.scripts[path] = hash
		}
	}
	return nil
}

// checkScripts returns an error if a script has changed since the settings were loaded.
func (s *Set) checkScripts(h *handler) error {
	for path, hash := range h.scripts {
		if now, err := hashFile(path); err != nil || now != hash {
			return fmt.Errorf("%s has changed since the hooks were loaded: read it, and start again", path)
		}
	}
	return nil
}

// digest returns the hash of a file with all scripts that its handlers name.
func digest(text []byte, list []*handler) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n", len(text), text)
	all := map[string]string{}
	for _, handler := range list {
		maps.Copy(all, handler.scripts)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%s %s\n", all[path], path)
	}
	return hex.EncodeToString(h.Sum(nil))
}
