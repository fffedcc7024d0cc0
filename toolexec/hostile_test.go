package toolexec_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// hostileArguments are texts of about n members or elements that cost a check more than others of their length.
func hostileArguments(n int) map[string]string {
	members := func(format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,`+format, i)
		}
		return b.String()[1:]
	}
	return map[string]string{
		"unknown members":      `{"path":"x",` + members(`"k%07d":1`) + `}`,
		"names in other cases": `{"path":"x","nodes":[` + members(`{"Name":"%d"}`) + `]}`,
		"wrong elements":       `{"path":"x","list":[` + members(`"%d"`) + `]}`,
		"wrong objects":        `{"path":"x","nodes":[` + members(`{"x":%d}`) + `]}`,
		"many small objects":   `{"path":"x","any":[{` + members(`"k%07d":1`) + `},` + members(`{"é":%d}`) + `]}`,
		"nested members":       `{"path":"x","any":` + strings.Repeat(`{"é":`, 900) + `{` + members(`"k%07d":1`) + `}` + strings.Repeat(`}`, 900) + `}`,
		"a long text":          `{"path":"` + strings.Repeat(`é\u0041`, n) + `","x":1}`,
	}
}

type hostileInput struct {
	Path  string `json:"path"`
	List  []int  `json:"list,omitempty"`
	Any   any    `json:"any,omitempty"`
	Nodes []struct {
		Name string `json:"name"`
	} `json:"nodes,omitempty"`
}

// A check costs a bounded amount for each byte of the arguments, whatever they are. Time is not measured.
func TestHostileArgumentsStayLinear(t *testing.T) {
	d, err := toolexec.NewDecoder[hostileInput]()
	require.NoError(t, err)
	work := func(args string) (perByte float64, problems int) {
		var from, to runtime.MemStats
		var in hostileInput
		runtime.ReadMemStats(&from)
		err := d.Decode(args, &in)
		runtime.ReadMemStats(&to)
		if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
			problems = len(wrong.Problems)
		}
		return float64(to.TotalAlloc-from.TotalAlloc) / float64(len(args)), problems
	}
	const few, many = 2000, 20_000
	large := hostileArguments(many)
	for name, small := range hostileArguments(few) {
		work(small) // what is made once
		before, _ := work(small)
		after, problems := work(large[name])
		assert.LessOrEqual(t, problems, agent.MaxArgumentProblems, name)
		assert.LessOrEqual(t, after, max(2*before, 100), "%s: bytes for each byte", name)
	}
}

// The problems that are described are the first ones by path, however many there are.
func TestTheFirstProblemsAreDescribed(t *testing.T) {
	d, err := toolexec.NewDecoder[hostileInput]()
	require.NoError(t, err)
	args := hostileArguments(1000)
	for name, first := range map[string]string{
		"unknown members": "/k0000000", "wrong elements": "/list/0", "wrong objects": "/nodes/0/name", "names in other cases": "/nodes/0/Name",
	} {
		var in hostileInput
		wrong, ok := errors.AsType[*agent.ArgumentsError](d.Decode(args[name], &in))
		require.True(t, ok, name)
		require.Len(t, wrong.Problems, agent.MaxArgumentProblems, name)
		assert.Equal(t, first, wrong.Problems[0].Path, name)
		assert.Contains(t, wrong.Error(), "100 or more problems: "+first, name)
	}
}

func BenchmarkHostileArguments(b *testing.B) {
	d, err := toolexec.NewDecoder[hostileInput]()
	require.NoError(b, err)
	for name, args := range hostileArguments(200_000) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				var in hostileInput
				_ = d.Decode(args, &in)
			}
		})
	}
}
