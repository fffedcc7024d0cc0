package condition_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// A path that is a pattern counts like a file that it names, unless it also matches ordinary files.
func TestAPatternNamesFiles(t *testing.T) {
	l := languageOf(t, condition.Options{Workspace: t.TempDir(), Home: t.TempDir()})
	const secret = `["**/.env", "**/.env.*", "**/*.pem", "**/.ssh/**", "**/id_rsa*", "**/credentials.json", "**/secrets.*", "/etc/shadow*"]`
	conditions := map[string]bool{}
	for want, paths := range map[bool][]string{
		true: {
			".env", "a/.env", ".env*", "**/.env*", ".en?", ".[e]nv", "*.env", "{.env,a}", "{a,{b,.env}}", "*.pem", "*.{key,pem}", "**/*.pe?", "id_*", "*rsa*", "**/.ssh/*", "~/.ssh/*",
			"cred*.json", "*secret*", "secrets.*", "*secrets.y*ml", "/etc/sha*", "./**/.env", strings.Repeat("{a,b}", 7),
		},
		false: {
			"*", "**", "**/*", ".*", "*.*", "*.json", "*.go", "s*", "*config*", "src/**", "{a,b}", "*.{ts,tsx}", "{.gitignore,a", "etc/sha*", "/usr/sha*", "?*", "main*", "a[",
		},
	} {
		for _, path := range paths {
			conditions[fmt.Sprintf("path.mayMatch(%q, %s)", path, secret)] = want
		}
	}
	hold(t, l, callOf(t, `{}`), conditions)
}

// A file exists unless the disk has no such file.
func TestAFileOfALineExists(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "here"), nil, 0o600))
	l := languageOf(t, condition.Options{Workspace: dir, Home: dir})
	hold(t, l, callOf(t, `{}`), map[string]bool{
		`shell.files("cat here").all(f, f.exists)`:       true,
		`shell.files("cat gone").exists(f, f.exists)`:    false,
		`shell.files("cat here/x").exists(f, f.exists)`:  false,
		`shell.files("cat $X/gone").exists(f, f.exists)`: true,
	})
}
