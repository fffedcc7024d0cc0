package durable_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" { // this process is one that is going to be killed
		os.Exit(crashing(dir))
	}
	goleak.VerifyTestMain(parts.Tests{M: m})
}
