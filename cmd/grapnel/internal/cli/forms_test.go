package cli

import (
	"reflect"
	"testing"

	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// TestStoredForms fails when what a kept run says of its agent changes and no fixtures are written.
func TestStoredForms(t *testing.T) {
	upgrade.CheckForm(t, "definition", upgrade.Fields(reflect.TypeFor[definition]()))
}
