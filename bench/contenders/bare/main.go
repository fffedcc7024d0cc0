// Command bare is the hand-written loop as a contender.
package main

import (
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/worker"
)

func main() { worker.Main(bare.Contender()) }
