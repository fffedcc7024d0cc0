package policies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench/policies"
)

// deciders returns the engines with the hundred rules, by name.
func deciders(t *testing.T) map[string]policies.Decider {
	t.Helper()
	all := map[string]policies.Decider{}
	for _, e := range policies.Engines() {
		d, err := e.Load(t.Context(), e.Text())
		require.NoError(t, err, e.Name)
		all[e.Name] = d
	}
	return all
}

// byHand returns the hundred rules once more, in Go.
func byHand(tool, n int, path string) string {
	for i := tool * 10; tool < 10 && i < tool*10+10; i++ {
		if n == i && strings.HasPrefix(path, "/etc") || n > 1000 {
			return fmt.Sprintf("r%d", i)
		}
	}
	return ""
}

// All engines decide the same, and name the same rule, for any call with both arguments.
func TestAllDecideAlike(t *testing.T) {
	all := deciders(t)
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"/etc", "/etc/passwd", "/etcetera", "/srv/app/main.go", "etc/passwd", "/", "", "/ETC/passwd", "/srv/ä \"quoted\"\n"}
	denied := 0
	for range 500 {
		tool := random.IntN(12) // two that have no rules
		n := []int{tool*10 + random.IntN(10), random.IntN(120) - 10, 999 + random.IntN(3)}[random.IntN(3)]
		path := paths[random.IntN(len(paths))]
		want := byHand(tool, n, path)
		if want != "" {
			denied++
		}
		call := policies.Call{Tool: fmt.Sprintf("tool%d", tool), Arguments: fmt.Sprintf(`{"n":%d,"path":%q}`, n, path)}
		for name, d := range all {
			rule, err := d.Decide(t.Context(), call)
			require.NoError(t, err, "%s: %v", name, call)
			assert.Equal(t, want, rule, "%s: %v", name, call)
			if reader, ok := d.(policies.Reader); ok {
				decide, err := reader.Read(call)
				require.NoError(t, err, "%s: %v", name, call)
				rule, err = decide(t.Context())
				require.NoError(t, err, "%s: %v", name, call)
				assert.Equal(t, want, rule, "%s, read before: %v", name, call)
			}
		}
	}
	assert.Greater(t, denied, 100)
	assert.Less(t, denied, 400)
}

// Where an argument is not what the rules take it for, each has its own idea of what is safe.
func TestWhereTheyDiffer(t *testing.T) {
	all := deciders(t)
	for arguments, want := range map[string]map[string]string{
		`{"n":30}`:                           {"grapnel": "r30", "opa": "", "cedar": ""},
		`{"path":"/etc/passwd"}`:             {"grapnel": "r30", "opa": "", "cedar": ""},
		`{"n":"30","path":"/etc/passwd"}`:    {"grapnel": "r30", "opa": "r30", "cedar": ""},
		`{"n":30,"path":["/etc/passwd"]}`:    {"grapnel": "r30", "opa": "", "cedar": ""},
		`{"n":30,"path":"/etc","more":true}`: {"grapnel": "r30", "opa": "r30", "cedar": "r30"},
	} {
		for name, d := range all {
			rule, err := d.Decide(t.Context(), policies.Call{Tool: "tool3", Arguments: arguments})
			require.NoError(t, err, "%s: %s", name, arguments)
			assert.Equal(t, want[name], rule, "%s: %s", name, arguments)
		}
	}
}

// A text that is wrong is no policy for anybody.
func TestWrongTexts(t *testing.T) {
	for _, e := range policies.Engines() {
		_, err := e.Load(t.Context(), append(e.Text(), " } ("...))
		assert.Error(t, err, e.Name)
	}
}
