package main

import (
	"testing"

	"github.com/grapnel-go/grapnel/examples/frameworks/desk/desktest"
)

func TestAgent(t *testing.T) { desktest.Test(t, run) }
