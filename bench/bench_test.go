package bench_test

import (
	"testing"

	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/benchtest"
)

func BenchmarkContender(b *testing.B) { benchtest.Bench(b, bare.Contender()) }
