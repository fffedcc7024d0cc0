// Package upgrade contains files and logs that earlier versions read and wrote, and tests that read them with the current version.
//
// testdata has a folder for each version with policies, agent files, pipelines, blueprints, recordings, event logs and audit logs, and
// the forms that the version knows (forms): keys of files and members of JSON. docs/stability.md lists the guarantees.
package upgrade
