package gemini_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/grapnel-go/grapnel/agent"
)

// BenchmarkNext is a step on a transcript of so many messages, all but the newest of
// which were sent before: what the driver and the SDK do, without a network.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			d := answering{"application/json", []byte(service.Whole.Body)}.driver(b)
			s := agent.NewState(agent.UserText("go"))
			for i := 1; s.MessageCount() < n; i++ {
				c := agent.ToolCall{ID: fmt.Sprint("fc_", i), Name: "look", Arguments: `{"path":"/srv/data/file.txt","limit":200}`}
				s = s.With(agent.Assistant("Let me look at the next file.", c),
					answered(c, said("package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n")))
			}
			if _, err := d.Next(context.Background(), s).Get(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Next(context.Background(), s).Get(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
