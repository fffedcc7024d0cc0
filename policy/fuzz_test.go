package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// Whatever stands in a file, it loads, or is told of with places; and what loads gives
// hooks that an agent takes.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/policies/*.yaml", "testdata/seeds/*", "library/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(0), string(text))
			f.Add(uint8(1), string(text))
		}
	}
	f.Add(uint8(0), "policy: p\nhooks: {PreToolUse: [{id: a, decision: rewrite, set: {a.0: \"null\"}, when: '${ITERATION} > 1'}]}")
	nobody := func(string) ([]byte, error) { return nil, errors.New("there are no files") }
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		p, err := policy.ParseKind(policy.Kind(kind%3), "p.yaml", []byte(text), policy.Options{Read: nobody})
		if err != nil {
			wrong, ok := errors.AsType[*yamlfile.Error](err)
			if !ok || len(wrong.Problems) == 0 {
				t.Fatalf("not told with a place: %v", err)
			}
			return
		}
		p.Check("bash")
		list, err := p.Hooks()
		if err != nil {
			return // of the host
		}
		if _, err := hooks.NewSet(list...).Compile(); err != nil {
			t.Fatalf("it loads, and no agent takes it: %v\n%s", err, text)
		}
	})
}
