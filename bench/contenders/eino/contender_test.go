package main

import (
	"testing"

	"github.com/grapnel-go/grapnel/bench/benchtest"
)

func TestContender(t *testing.T)      { benchtest.Prove(t, contenders()...) }
func BenchmarkContender(b *testing.B) { benchtest.Bench(b, contenders()...) }
