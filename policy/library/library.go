// Package library has policies that are ready to be used, as files.
package library

import "embed"

// Files are the policies, each a YAML file.
//
//go:embed *.yaml
var Files embed.FS
