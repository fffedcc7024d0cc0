package builder_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
)

// order returns the names of the parts in the order in which they were installed.
func order(parts ...capability.Capability) (string, error) {
	plan, err := builder.New().With(parts...).Plan().Get()
	return plan.Name(), err
}

func TestInstalledInOrder(t *testing.T) {
	for want, parts := range map[string][]capability.Capability{
		"":     nil,
		"abc":  {part{name: "a"}, part{name: "b"}, part{name: "c"}},
		"bac":  {part{name: "a", requires: []string{"b"}}, part{name: "b"}, part{name: "c"}},
		"bca":  {part{name: "a", requires: []string{"c"}}, part{name: "b"}, part{name: "c"}},
		"cba":  {part{name: "a", requires: []string{"b"}}, part{name: "b", requires: []string{"c"}}, part{name: "c"}},
		"cabd": {part{name: "a", after: []string{"c", "z"}}, part{name: "b", after: []string{"c"}}, part{name: "c"}, part{name: "d"}},
		"xy":   {part{name: "x", after: []string{""}}, part{name: "y"}},
	} {
		got, err := order(parts...)
		require.NoError(t, err, want)
		assert.Equal(t, want, got)
	}
}

func TestWhatIsWrongWithCapabilities(t *testing.T) {
	unnamed := capability.Func(func(p capability.Plan) (capability.Plan, error) { return p, fmt.Errorf("no disk") })
	for name, tc := range map[string]struct {
		parts []capability.Capability
		want  []string
	}{
		"nil": {[]capability.Capability{part{name: "a"}, nil}, []string{"capability 2 of 2 is nil"}},
		"IP-110, SW-22: there twice": {
			[]capability.Capability{capability.UseGuards{Steps: 1}, part{name: "a"}, capability.UseGuards{Steps: 2}},
			[]string{`capability "guards" is declared twice: an agent can have only one`},
		},
		"another approver": {
			[]capability.Capability{capability.UseApproval(noPerson), capability.UseApproval(noPerson)},
			[]string{`capability "approval" is declared twice: an agent can have only one`},
		},
		"missing": {
			[]capability.Capability{part{name: "a", requires: []string{"b", "c", "b"}, after: []string{"d"}}, needy{func(p capability.Plan) (capability.Plan, error) { return p, nil }}},
			[]string{`capability "a" requires "b", which is not installed`, `capability "a" requires "c", which is not installed`,
				`capability 2 (builder_test.needy) requires "guards", which is not installed`},
		},
		"a circle": {
			[]capability.Capability{part{name: "a", after: []string{"b"}}, part{name: "b", requires: []string{"a"}}, part{name: "behind", after: []string{"a"}}, part{name: "free"}},
			[]string{`capabilities require each other in a cycle: capability "a", capability "b"`},
		},
		"needs itself": {
			[]capability.Capability{part{name: "a", requires: []string{"a"}}},
			[]string{`capabilities require each other in a cycle: capability "a"`},
		},
		"fails to install": {[]capability.Capability{part{name: "a"}, unnamed}, []string{"capability 2 (capability.Func): no disk"}},
		"guards that are none": {
			[]capability.Capability{capability.UseGuards{Steps: -2}},
			[]string{`capability "guards": the limit of steps is -2: it must not be less than -1, which means none, and zero means 100`},
		},
		"all at once": {
			[]capability.Capability{nil, part{name: "a"}, part{name: "a"}, unnamed, part{name: "b", requires: []string{"z"}}},
			[]string{"capability 1 of 5 is nil", `capability "a" is declared twice: an agent can have only one`,
				`capability "b" requires "z", which is not installed`, "capability 4 (capability.Func): no disk"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := order(tc.parts...)
			require.Error(t, err)
			assert.Equal(t, append([]string{"building the agent:"}, tc.want...), strings.Split(err.Error(), "\n"))
		})
	}
}

// needy has no name, but needs.
type needy struct{ capability.Func }

func (needy) Requires() []string { return []string{"guards"} }

// Each capability comes after the capabilities that it needs. When several can come next, the first given does.
func TestOrderIsTheFirstThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "count")
		rank := rapid.Permutation(lo.Range(n)).Draw(t, "rank") // needs only lead down in rank: no circles
		var parts []capability.Capability
		needs := map[string][]string{}
		for i := range n {
			p := part{name: string(rune('a' + i))}
			for j := range n {
				if rank[j] >= rank[i] {
					continue
				}
				switch name := string(rune('a' + j)); rapid.IntRange(0, 5).Draw(t, "needs") {
				case 0:
					p.requires = append(p.requires, name)
				case 1:
					p.after = append(p.after, name)
				}
			}
			p.after = append(p.after, "not there")
			needs[p.name] = slices.Concat(p.requires, p.after)
			parts = append(parts, p)
		}
		got, err := order(parts...)
		require.NoError(t, err)
		require.Len(t, got, n, "each is installed once")
		for i := range got {
			installed, next := got[:i], got[i:i+1]
			free := lo.FindOrElse(parts, nil, func(c capability.Capability) bool { // the first that could have come here
				name := c.(part).name
				return !strings.Contains(installed, name) && lo.EveryBy(needs[name], func(need string) bool {
					return need == "not there" || strings.Contains(installed, need)
				})
			})
			require.NotNil(t, free)
			assert.Equal(t, free.(part).name, next)
		}
	})
}
