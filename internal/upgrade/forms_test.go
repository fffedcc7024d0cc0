package upgrade_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/upgrade"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/registry"
)

var _ = flag.Bool("update", false, "write the forms again")

// TestStoredForms compares the current formats with the recorded ones. Package events in cmd/grapnel has a test of
// the same name.
func TestStoredForms(t *testing.T) {
	for name, of := range map[string]reflect.Type{
		"audit":     reflect.TypeFor[audit.Entry](),
		"recording": reflect.TypeFor[replay.Record](),
	} {
		t.Run(name, func(t *testing.T) { upgrade.CheckForm(t, name, upgrade.Fields(of)) })
	}
	for name, schema := range map[string][]byte{"policy": policy.Schema(), "policy-test": policytest.Schema()} {
		t.Run(name, func(t *testing.T) { upgrade.CheckForm(t, name, schemaKeys(t, schema)) })
	}
	t.Run("agent-file", func(t *testing.T) {
		var keys []string
		for field := range reflect.TypeFor[registry.Definition]().Fields() {
			keys = append(keys, fmt.Sprint(field.Tag.Get("key"), " ", field.Type.Kind()))
		}
		slices.Sort(keys)
		upgrade.CheckForm(t, "agent-file", keys)
	})
}

// schemaKeys returns the paths of a JSON Schema's keys, with their types.
func schemaKeys(t *testing.T, schema []byte) []string {
	t.Helper()
	var root any
	require.NoError(t, json.Unmarshal(schema, &root))
	var keys []string
	var walk func(at any, path string)
	walk = func(at any, path string) {
		switch at := at.(type) {
		case map[string]any:
			if properties, ok := at["properties"].(map[string]any); ok {
				for name, of := range properties {
					line := path + "/" + name
					if of, ok := of.(map[string]any); ok && of["type"] != nil {
						line += fmt.Sprint(" ", of["type"])
					}
					keys = append(keys, line)
				}
			}
			for name, below := range at {
				next := path
				if name == "$defs" || name == "properties" || name == "items" {
					next += "/" + name
				} else if _, isMap := below.(map[string]any); isMap {
					next += "/" + name
				}
				walk(below, next)
			}
		case []any:
			for _, below := range at {
				walk(below, path)
			}
		}
	}
	walk(root, "")
	slices.Sort(keys)
	return slices.Compact(keys)
}
