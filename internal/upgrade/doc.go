// Package upgrade holds what earlier versions stored, and the tests that read it with this version.
//
// testdata has one folder for each version: stores, states, files and logs that the version wrote, the facts that it
// knew about them (facts.json), and the forms that it wrote (forms): columns, members of JSON, keys of files. The tests
// of this package read all of them, resume the runs and upgrade the stores. docs/upgrading.md says what is promised.
//
// A change of a stored form fails CheckForm until the fixtures of a new version are written:
//
//	go test ./internal/upgrade ./agent ./cmd/grapnel/internal/... -run 'TestWrite|TestStoredForms' -write-fixtures=v0.2.0
//
// A file that is there already is never overwritten. testdata/source has the files that people write: each version
// gets a copy.
package upgrade
