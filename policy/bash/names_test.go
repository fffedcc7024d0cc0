package bash

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The names that a program prints are patterns for the program that takes them.
func TestPrintedNamesAreKnown(t *testing.T) {
	for line, want := range map[string][]string{
		"find a -type f -exec wc -l {} +":                          {"/w/a/**"},
		"find . -name '*.go' -exec head {} \\;":                    {"/w/**/*.go"},
		"find a b -size +1k | xargs wc":                            {"/w/a/**", "/w/b/**"},
		"find a ! -name x -print0 | xargs -0 wc":                   {"/w/a/**"},
		"find a -name 'x*' | sort | head -5 | xargs -I{} wc {}":    {"/w/a/**/x*"},
		"wc $(find a -name x.c)":                                   {"/w/a/**/x.c"},
		"wc $(git ls-files | grep -v y)":                           {"/w/**"},
		"for f in $(ls a); do wc \"a/$f\"; done":                   {"/w/a/*", "/w/a/a", "/w/a"},
		"for f in $(find a); do wc $f; done":                       {"/w/a/**"},
		"for d in */; do (cd $d && wc x); done":                    {"/w/*/x"},
		"find a -name '*.c' | while read -r f; do wc \"$f\"; done": {"/w/a/**/*.c"},
		"while read f; do wc \"$f\"; done < <(find a -type f)":     {"/w/a/**"},
		"x=$(find a -name y | head -1); wc \"$x\"":                 {"/w/a/**/y"},
		"grep -rl x a | xargs wc":                                  {"/w/a/**"},
		"d=$(mktemp -d); wc $d/x":                                  {"/tmp/tmp.XXXXXXXXXX/x"},
		"wc \"$(mktemp -p out y.XXX)\"":                            {"/w/out/y.XXX"},
		"wc $(go env GOROOT)/VERSION":                              {"/usr/local/go/VERSION"},
		"wc $(git rev-parse --show-toplevel)/x":                    {"/top/x"},
		"ls -1A | xargs wc":                                        {"/w/*", "/w/.*"},
		"wc $(ls -a x)":                                            {"/w/*", "/w/.*"},
		"wc $(which ls)":                                           {"/usr/bin/ls"},
		"wc $(go list ./a/...)":                                    {"/w/a/..."},
	} {
		var got []string
		a := Analyse(line, Options{Dir: "/w", Repository: "/top"})
		for _, f := range a.Files {
			if f.Command >= 0 && (a.Commands[f.Command].Name == "wc" || a.Commands[f.Command].Name == "head" && f.Word.Kind == Pattern) {
				assert.True(t, f.Known, "%s: %s", line, f.Path)
				got = append(got, f.Path)
			}
		}
		assert.Subset(t, want, got, line)
		assert.NotEmpty(t, got, line)
		assert.True(t, a.Clear(), line)
	}
}

// Output that may hold other text, and names behind links or below unknown folders, stay unknown.
func TestOtherOutputIsUnknown(t *testing.T) {
	for _, line := range []string{
		"find -L a | xargs wc", "find $X -type f -exec wc {} +", "find a -printf x/%p | xargs wc", "find a -ls | xargs wc", "{ ls; echo $X; } | xargs wc",
		"ls -l | xargs wc", "ls -R a | xargs wc", "wc $(cat list)", "./ls | xargs wc", "ls() { echo $X; }; ls | xargs wc", "find a 2>&1 | xargs wc",
		"sort x | xargs wc", "ls | sed s/a/b/ | xargs wc", "wc x$(ls)", "find a -execdir wc {} +", "find a | xargs -I{} wc {}/../$X", "cd a; wc $(git rev-parse --show-toplevel)",
		"GIT_WORK_TREE=/x; wc $(git rev-parse --show-toplevel)", "wc $(git -C /x rev-parse --show-toplevel)", "TMPDIR=$X; wc $(mktemp)", "wc $(mktemp -u)", "wc $(go list -f '{{.Dir}}')",
		"GOROOT=$X; wc $(go env GOROOT)", "wc $(which $X)", "find a -exec echo $X \\; | xargs wc",
	} {
		a := Analyse(line, Options{Dir: "/w", Repository: "/top"})
		known := true
		for _, f := range a.Files {
			known = known && (f.Known || a.Commands[f.Command].Name != "wc")
		}
		assert.False(t, known, line)
	}
}
