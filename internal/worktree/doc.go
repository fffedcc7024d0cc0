// Package worktree lists the files of a directory that git does not ignore, without running git.
//
// Git runs programs that the settings in .git/config name. In a directory that an agent can change, the agent may have
// written these settings. This package reads only a repository's ignore files and index. It follows no links.
package worktree
