package store

import (
	"crypto/sha256"
	_ "embed" // for the tables
	"regexp"
	"strings"
)

//go:embed schema.sql
var tables string

// NewSchema returns the schema of a database: the tables, with the database's words in place of others, and what it adds. The digest
// identifies the schema. Comments and white space do not change it.
func NewSchema(words *strings.Replacer, added string) (schema string, digest [sha256.Size]byte) {
	schema = words.Replace(tables) + added
	statements := strings.Fields(regexp.MustCompile(`--.*`).ReplaceAllString(schema, ""))
	return schema, sha256.Sum256([]byte(strings.Join(statements, " ")))
}
