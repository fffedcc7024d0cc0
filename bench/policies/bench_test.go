package policies_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/grapnel-go/grapnel/bench/policies"
)

// calls are what the engines are asked about, and the rule that each is denied by.
var calls = []struct {
	name, rule string
	call       policies.Call
}{
	{"allowed", "", policies.Call{Tool: "tool3", Arguments: `{"n":-1,"path":"/srv/app/main.go"}`}},
	{"denied", "r39", policies.Call{Tool: "tool3", Arguments: `{"n":39,"path":"/etc/passwd"}`}},
	{"no-rules", "", policies.Call{Tool: "other", Arguments: `{"n":-1,"path":"/srv/app/main.go"}`}},
}

func load(b *testing.B, e policies.Engine, text []byte) policies.Decider {
	b.Helper()
	d, err := e.Load(b.Context(), text)
	if err != nil {
		b.Fatal(e.Name, err)
	}
	return d
}

// BenchmarkDecide measures a decision, from a tool's name and a JSON text to the rule that denies:
// of a call that the ten rules of its tool let through, of one that the last of them denies,
// and of one that no rule is about.
func BenchmarkDecide(b *testing.B) {
	for _, c := range calls {
		for _, e := range policies.Engines() {
			b.Run("call="+c.name+"/engine="+e.Name, func(b *testing.B) {
				d := load(b, e, e.Text())
				ctx := context.Background()
				b.ReportAllocs()
				for b.Loop() {
					if rule, err := d.Decide(ctx, c.call); err != nil || rule != c.rule {
						b.Fatal(rule, err)
					}
				}
			})
		}
	}
}

// BenchmarkJudge measures BenchmarkDecide without reading the arguments, for those who can be
// given what they understand.
func BenchmarkJudge(b *testing.B) {
	for _, c := range calls {
		for _, e := range policies.Engines() {
			reader, ok := load(b, e, e.Text()).(policies.Reader)
			if !ok {
				continue
			}
			b.Run("call="+c.name+"/engine="+e.Name, func(b *testing.B) {
				decide, err := reader.Read(c.call)
				if err != nil {
					b.Fatal(err)
				}
				ctx := context.Background()
				b.ReportAllocs()
				for b.Loop() {
					if rule, err := decide(ctx); err != nil || rule != c.rule {
						b.Fatal(rule, err)
					}
				}
			})
		}
	}
}

// BenchmarkLoad measures from the text of the rules to what decides: as it is, and with the
// first call for each of the ten tools, since some is done only when it is needed.
func BenchmarkLoad(b *testing.B) {
	for _, then := range []string{"nothing", "ten-calls"} {
		for _, e := range policies.Engines() {
			b.Run("then="+then+"/engine="+e.Name, func(b *testing.B) {
				text := e.Text()
				b.ReportAllocs()
				for b.Loop() {
					d := load(b, e, text)
					for i := 0; then == "ten-calls" && i < 10; i++ {
						rule, err := d.Decide(b.Context(), policies.Call{Tool: fmt.Sprintf("tool%d", i), Arguments: `{"n":-1,"path":"/srv/app/main.go"}`})
						if err != nil || rule != "" {
							b.Fatal(rule, err)
						}
					}
				}
			})
		}
	}
}
