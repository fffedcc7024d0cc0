package postgres

import (
	"context"
	_ "embed" // for the schema
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

//go:embed schema.sql
var indexes string

// The statements that create the tables, and their digest. The order of text is the order of its bytes.
var (
	statements, sum = store.NewSchema(strings.NewReplacer("text NOT NULL", `text COLLATE "C" NOT NULL`), indexes)
	digest          = hex.EncodeToString(sum[:])
)

var errOtherSchema = errors.New("it has the tables of another version of grapnel, and is left as it is: " +
	`export its runs with the grapnel that wrote it ("grapnel runs export ID"), and use another schema or database`)

// SchemaSQL returns the statements with which Open creates the schema. A role that may create tables can execute them, so that the
// program itself can use a role that may only read and write rows.
func SchemaSQL(o Options) string {
	name := pgx.Identifier{o.schema()}.Sanitize()
	return "BEGIN;\nCREATE SCHEMA IF NOT EXISTS " + name + ";\nSET LOCAL search_path = " + name + ";\n\n" + createTables() + "COMMIT;\n"
}

// createTables returns the statements that create the tables and record their digest.
func createTables() string {
	return statements + "INSERT INTO schema_digest (digest) VALUES ('" + digest + "');\n"
}

// createSchema creates the schema and its tables if there are none, and refuses other tables. Processes that do so at the same time
// wait for each other in the database, without a time limit.
func (o Options) createSchema(ctx context.Context, config *pgx.ConnConfig) error {
	schema := o.schema()
	config = config.Copy()
	config.AfterConnect = o.session(0)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		defer func() { _ = conn.Close(ctx) }()
		err = pgx.BeginFunc(ctx, conn, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('grapnel/' || $1, 0))`, schema); err != nil {
				return fmt.Errorf("wait for another process that creates it: %w", err)
			}
			return ensureTables(ctx, t, schema)
		})
	}
	if err != nil {
		return fmt.Errorf("schema %q: %w", schema, err)
	}
	return nil
}

// ensureTables creates the schema and its tables if there are none.
func ensureTables(ctx context.Context, t pgx.Tx, schema string) error {
	var exists, hasRuns, hasDigest bool
	err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'runs'),
		EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_digest')`, schema).Scan(&exists, &hasRuns, &hasDigest)
	if err != nil {
		return err
	}
	if hasDigest {
		var found string
		err := t.QueryRow(ctx, `SELECT coalesce(max(digest), '') FROM schema_digest`).Scan(&found)
		if err == nil && found != digest {
			err = errOtherSchema
		}
		return err
	}
	if hasRuns {
		return errOtherSchema
	}
	if !exists { // CREATE SCHEMA IF NOT EXISTS needs the right to create a schema even if this one exists
		if _, err := t.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return fmt.Errorf("create it: %w", err)
		}
	}
	if _, err := t.Exec(ctx, createTables()); err != nil {
		return fmt.Errorf("create its tables: %w", err)
	}
	return nil
}
