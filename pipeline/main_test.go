package pipeline_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := working(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(parts.Tests{M: m})
}
