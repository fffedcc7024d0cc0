package upgrade_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"database/sql"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/upgrade"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/registry"
)

// TestStoredForms compares what this version writes with what the newest version with fixtures wrote. Packages agent
// and those of cmd/grapnel have a test of this name for types of their own.
func TestStoredForms(t *testing.T) {
	for name, of := range map[string]reflect.Type{
		"intervention": reflect.TypeFor[agent.Intervention](),
		"approval":     reflect.TypeFor[agent.Approval](),
		"audit":        reflect.TypeFor[audit.Entry](),
		"recording":    reflect.TypeFor[replay.Record](),
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
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "runs.db")
		_, err := sqlite.Migrate(t.Context(), path)
		require.NoError(t, err)
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer db.Close()
		rows, err := db.QueryContext(t.Context(), `SELECT m.name || '.' || c.name || ' ' || c.type || iif(c."notnull", ' NOT NULL', '')
			|| coalesce(' DEFAULT ' || c.dflt_value, '') || iif(c.pk, ' KEY ' || c.pk, '')
			FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid`)
		require.NoError(t, err)
		defer rows.Close()
		var columns []string
		for rows.Next() {
			var line string
			require.NoError(t, rows.Scan(&line))
			columns = append(columns, line)
		}
		require.NoError(t, rows.Err())
		upgrade.CheckForm(t, "sqlite", columns)
	})
	t.Run("postgres", func(t *testing.T) {
		at := parts.Postgres(t)
		_, err := postgres.Migrate(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		db, err := pgx.Connect(t.Context(), at)
		require.NoError(t, err)
		defer db.Close(t.Context())
		rows, err := db.Query(t.Context(), `SELECT table_name || '.' || column_name || ' ' || data_type || CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END
			|| coalesce(' DEFAULT ' || column_default, '') || CASE is_generated WHEN 'ALWAYS' THEN ' GENERATED' ELSE '' END
			FROM information_schema.columns WHERE table_schema = 'grapnel' ORDER BY table_name COLLATE "C", ordinal_position`)
		require.NoError(t, err)
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		upgrade.CheckForm(t, "postgres", columns)
	})
}

// schemaKeys returns the keys of files that a JSON Schema knows, with what is said of their types, as paths.
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
