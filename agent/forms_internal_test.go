package agent

import (
	"reflect"
	"testing"

	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// TestStoredForms fails when the JSON of a state, its changes or its seal changes and no fixtures are written.
func TestStoredForms(t *testing.T) {
	for name, of := range map[string]reflect.Type{
		"state": reflect.TypeFor[stateJSON](), "changes": reflect.TypeFor[changesJSON](), "seal": reflect.TypeFor[sealedJSON](),
	} {
		t.Run(name, func(t *testing.T) { upgrade.CheckForm(t, name, upgrade.Fields(of)) })
	}
}
