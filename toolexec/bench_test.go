package toolexec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

func add(_ context.Context, in pair) (string, error) { return strconv.Itoa(in.A + in.B), nil }

func BenchmarkCall(b *testing.B) {
	b.Run("by hand", func(b *testing.B) { // what one would write without this package, unchecked
		b.ReportAllocs()
		for b.Loop() {
			var in pair
			require.NoError(b, json.Unmarshal([]byte(`{"a":2,"b":3}`), &in))
			_, err := add(b.Context(), in)
			require.NoError(b, err)
		}
	})
	for _, bench := range []struct {
		name   string
		call   agent.ToolCall
		policy toolexec.Policy
	}{
		{name: "two ints", call: call("add", `{"a":2,"b":3}`)},
		{name: "two ints within a second", call: call("add", `{"a":2,"b":3}`), policy: toolexec.Policy{Timeout: time.Second}},
		{name: "invalid", call: call("add", `{"a":"two"}`)},
		{name: "malformed", call: call("add", `{"a":2,"a":3}`)},
		{name: "unknown tool", call: call("ad", `{"a":2,"b":3}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e := executor(b, toolexec.Options{Policy: bench.policy}, toolexec.Func("add", "Adds.", add))
			b.ReportAllocs()
			for b.Loop() {
				e.Execute(b.Context(), agent.State{}, e.Prepare(b.Context(), agent.State{}, &bench.call).MustGet()).MustGet()
			}
		})
	}
}

// A call costs the same however many tools there are.
func BenchmarkToolboxSize(b *testing.B) {
	for _, size := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(size, " tools"), func(b *testing.B) {
			tools := make([]toolexec.Tool, size)
			for i := range tools {
				tools[i] = toolexec.Func(fmt.Sprintf("add_%d", i), "Adds.", add)
			}
			e := executor(b, toolexec.Options{}, tools...)
			c := call(fmt.Sprintf("add_%d", size/2), `{"a":2,"b":3}`)
			b.ReportAllocs()
			for b.Loop() {
				e.Execute(b.Context(), agent.State{}, e.Prepare(b.Context(), agent.State{}, &c).MustGet()).MustGet()
			}
		})
	}
}

func TestTypedCallAllocatesTwice(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "Adds.", add))
	c := call("add", `{"a":2,"b":3}`)
	n := testing.AllocsPerRun(1000, func() {
		e.Execute(t.Context(), agent.State{}, e.Prepare(t.Context(), agent.State{}, &c).MustGet()).MustGet()
	})
	require.LessOrEqual(t, n, 2.0, "one for what is prepared, one for the result")
}
