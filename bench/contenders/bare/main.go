// Command bare enters the loop that one would write by hand.
package main

import (
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/worker"
)

func main() { worker.Main(bare.Contender()) }
