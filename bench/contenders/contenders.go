// Package contenders lists who is measured.
package contenders

import (
	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/eino"
	"github.com/grapnel-go/grapnel/bench/grapnel"
)

// All returns every contender in the order of the tables. The first is the one
// that the others are compared with.
func All() []bench.Contender {
	return []bench.Contender{
		bare.Contender(),
		grapnel.Contender(),
		eino.Contender(),
	}
}
