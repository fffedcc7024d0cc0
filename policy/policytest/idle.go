package policytest

import (
	"context"

	"github.com/grapnel-go/grapnel/action"
)

// idle is an action that does nothing.
type idle struct{}

// Do returns an answer without an opinion.
func (idle) Do(context.Context, *action.Request) (*action.Answer, error) {
	return &action.Answer{Off: true}, nil
}

// IdleHost returns a host for actions that never run. It provides everything that a file can name except funcs.
func IdleHost() action.Host {
	nobody := fixtures{}.host(&world{})
	nobody.Secrets = action.Secrets{}
	return nobody
}
