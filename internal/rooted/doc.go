// Package rooted reads and writes files in directories that untrusted programs can change.
//
//	base := rooted.Base("/srv/project") // agents change what is below it
//	err := base.WriteFile("/srv/project/.grapnel/pipelines/friday/status.json", []byte("{}"))
//
// A program that can write in a directory can replace its files by a pipe, or by a link to a file elsewhere. No function
// follows a link below the base, waits for a pipe, or writes to a file that has a second name.
package rooted
