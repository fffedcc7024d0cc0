package bench_test

import (
	"testing"

	"github.com/grapnel-go/grapnel/bench/benchtest"
	"github.com/grapnel-go/grapnel/bench/contenders"
)

func BenchmarkSteps(b *testing.B)   { benchtest.Steps(b, contenders.All(), 10, 100, 1000) }
func BenchmarkHooks(b *testing.B)   { benchtest.Hooks(b, contenders.All(), 0, 1, 10) }
func BenchmarkHistory(b *testing.B) { benchtest.History(b, contenders.All(), 10, 100, 1000, 10_000) }
func BenchmarkCalls(b *testing.B)   { benchtest.Calls(b, contenders.All(), 8) }
