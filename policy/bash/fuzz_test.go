package bash

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// For every input, Analyse does not panic and returns the same bounded result in bounded time.
func FuzzAnalyse(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "corpus.txt"))
	require.NoError(f, err)
	for entry := range strings.SplitSeq(string(text), "\n---\n") {
		f.Add(entry)
	}
	text, err = os.ReadFile(filepath.Join("testdata", "cases.txt"))
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		began := time.Now()
		a := Analyse(line, Options{Dir: "/srv", Env: map[string]string{"X": "y"}})
		assert.Less(t, time.Since(began), time.Minute)
		assert.LessOrEqual(t, len(a.Commands), maxCommands)
		assert.LessOrEqual(t, len(a.Files)+len(a.Hosts), 4*maxFuel)
		for _, c := range a.Commands {
			assert.LessOrEqual(t, len(c.Via), 2*maxDepth)
			assert.True(t, c.Kind != Unknown || !a.Clear(), "a command without a name in a clear line")
		}
		for _, o := range a.Opaque {
			assert.NotEmpty(t, o.Detail)
			assert.Less(t, o.Command, len(a.Commands))
			assert.GreaterOrEqual(t, o.Pos.Line, 1)
			assert.LessOrEqual(t, o.Pos.Offset, len(line))
		}
		if !reflect.DeepEqual(a, Analyse(line, Options{Dir: "/srv", Env: map[string]string{"X": "y"}})) {
			t.Fatalf("twice not the same: %q", line)
		}
	})
}

// The worst accepted lines take bounded time.
func TestLargeLines(t *testing.T) {
	for name, part := range map[string]string{
		"commands":      "a;",
		"pipes":         "a|",
		"ands":          "a&&",
		"assignments":   "a=$a$a;",
		"many names":    "",
		"growing":       "a=${a}x;$a;",
		"words":         "a ",
		"braces":        "{a,b}",
		"ranges":        "{1..9}",
		"substitutions": "$(a)",
		"subshells":     "(a=1);",
		"functions":     "f(){ f x;};f;",
		"bodies":        "f(){ f $1 $1;f $1;};",
		"loops":         "for i in 1 2 3 4 5 6 7 8;do ",
		"ifs":           "if a;then b;elif ",
		"cases":         "case x in a) ",
		"evals":         "eval eval eval ",
		"shells":        "sh -c sh -c ",
		"quoted shells": `sh -c "sh -c \"a\"";`,
		"sudos":         "sudo env nohup ",
		"heredocs":      "a <<E\nE\n",
		"cds":           "cd a;",
		"cd and":        "cd a&&",
		"finds":         "find -exec ",
		"xargs":         "xargs xargs ",
		"aliases":       "alias a='a b';a\n",
		"arithmetic":    "((a+=1));",
		"arrays":        "a+=(b c);",
		"splits":        "a=\"$a b\";x $a;",
		"awk":           "awk '{print}';",
		"open":          "(",
		"tests":         "[[ a && ",
		"defaults":      "${a:-",
		"elifs":         "if a; then b; elif c; then d; fi;",
		"git":           "git -c alias.a='!git a' a;",
		"env -S":        "env -S 'env -S ",
		"slashes":       "/",
		"escapes":       `\a`,
		"quotes":        `"`,
		"backquotes":    "`",
		"dollars":       "$",
		"parallel":      "parallel a {} ",
	} {
		line := strings.Repeat(part, maxLine/max(len(part), 1))
		if part == "" {
			var b strings.Builder
			for i := 0; b.Len() < maxLine-40; i++ {
				b.WriteString("v" + formatInt(i) + "=1;(x);")
			}
			line = b.String()
		}
		began := time.Now()
		a := Analyse(line, Options{})
		took := time.Since(began)
		assert.Less(t, took, time.Minute, name)
		assert.LessOrEqual(t, len(a.Commands), maxCommands, name)
		t.Logf("%-14s %8s %5d commands %4d opaque %v", name, took.Round(time.Millisecond), len(a.Commands), len(a.Opaque), a.Unparseable)
	}
	a := Analyse(strings.Repeat("x", maxLine+1), Options{})
	assert.ErrorContains(t, a.Unparseable, "longer than 65536 bytes")
}
