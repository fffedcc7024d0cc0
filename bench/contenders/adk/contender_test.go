package main

import (
	"testing"

	"github.com/grapnel-go/grapnel/bench/benchtest"
)

func TestContender(t *testing.T)      { benchtest.Prove(t, contender()) }
func BenchmarkContender(b *testing.B) { benchtest.Bench(b, contender()) }
