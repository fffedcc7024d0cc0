// Package upgrade contains data that earlier versions stored, and tests that read this data with the current version.
//
// testdata has a folder for each version with the stores, states, files and logs that the version wrote, facts about
// them (facts.json), and the stored forms (forms): columns, members of JSON, keys of files. The tests of this package
// read all of them, resume the runs and upgrade the stores. docs/stability.md lists the guarantees.
//
// A change of a stored form fails CheckForm until the fixtures of a new version are written:
//
//	go test ./internal/upgrade ./agent ./cmd/grapnel ./cmd/grapnel/internal/{cli,events} -run 'TestWrite|TestStoredForms' -write-fixtures=v0.2.0
//
// An existing file is never overwritten. testdata/source has files in the formats that people write: each version
// gets a copy.
package upgrade
