package policy

import (
	release "github.com/grapnel-go/grapnel/internal/version"
	"github.com/grapnel-go/grapnel/policy/internal/file"
)

// SchemaVersion is the release of the published schemas. An editor checks a file against the schema of the version that
// the file names.
const SchemaVersion = "v" + release.Next

// SchemaID is the URL of the published policy file schema.
const SchemaID = "https://raw.githubusercontent.com/grapnel-go/grapnel/" + SchemaVersion + "/docs/policy.schema.json"

// Schema returns the JSON Schema for policy files, for editors: it completes keys and points and describes them. Load
// checks more.
func Schema() []byte { return file.Schema(SchemaID) }
