package upgrade_test

import (
	"os"
	"testing"

	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) { os.Exit(parts.Tests{M: m}.Run()) }
