package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(*testing.T) durable.Store { return memory.New() }

func TestStore(t *testing.T) { durabletest.TestStore(t, open) }

func TestRandom(t *testing.T) { durabletest.TestRandom(t, open) }
