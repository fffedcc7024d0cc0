// Package upgrade contains files and logs that earlier versions read and wrote, and tests that read them with the
// current version.
//
// For each version, testdata has a folder with policies, agent files, pipelines, blueprints, recordings, event logs and
// audit logs, and with the version's formats (forms): keys of files and members of JSON. docs/stability.md lists the
// guarantees.
package upgrade
