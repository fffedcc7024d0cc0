// Package worktree lists the files of a directory that git does not ignore, without running git.
//
// Running git in a directory that an agent can change is running what the agent wrote there: settings in .git/config name
// programs. This package reads ignore files and the index, and nothing else of a repository. It follows no links.
package worktree
