package policytest

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/action"
)

// idle is an action that does nothing.
type idle struct{}

// Do does nothing, and has no opinion.
func (idle) Do(context.Context, *action.Request) mo.Result[*action.Answer] {
	return mo.Ok(&action.Answer{Off: true})
}
