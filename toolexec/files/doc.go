// Package files gives an agent tools for the files below one directory, and for no others: read_file, write_file,
// edit_file, list_files, glob and grep. Every method of a Tree is the Go form of one of them.
//
//	tree, err := files.Open(files.Config{Root: "/srv/project"})
//	if err != nil {
//		return err
//	}
//	defer tree.Close()
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tree.Tools()...)).Build().Get()
//
// # Paths
//
// A path is relative to the root, with slashes. An absolute one is taken if it begins with the root, and is then the
// relative one. Paths are cleaned before anything is opened, so that link/../a is a wherever link leads. In results
// paths are relative and sorted; a name that is not UTF-8 or has control characters is shown quoted, and cannot be
// asked for.
//
// # Nothing gets out
//
// All is opened through an os.Root: neither .. nor a symbolic link leads out of it, however the tree is changed
// between a check and its use, and absolute links are refused even if they lead back in. Only regular files and
// directories are opened: pipes, devices, sockets and the kernel's own files (/proc, /sys) are refused, without waiting
// for a process at the other end. Walks do not follow links.
//
// What cannot be seen is a hard link, which is the file itself under another name, and what is mounted into the tree.
// A file with other names is still never changed under them: writing puts a new file in its place.
//
// # Reading
//
// Sizes are capped, and what was left out is said together with how to get it. Binary files, those with a NUL byte in
// their first 8000 bytes, are not shown; bytes that are not UTF-8 are shown as �. Lines that end in CRLF are shown
// without the CR.
//
// # Writing
//
// A file is written under a temporary name in its directory, synced and renamed: readers see the old file or the new
// one, also after a crash, and after an error nothing is left behind. (A process that is killed may leave a file named
// .grapnel-….tmp.) Mode and, where the process may, owner are kept; a link is followed and stays a link. Writes of one
// Tree wait for each other, so that parallel edits of a file do not get lost; against other processes there is the hash
// that read_file tells and write_file and edit_file take.
//
// An edit replaces a text that occurs exactly once, or all of its occurrences if that was asked for. Everything else in
// the file stays as it is to the byte; where the file has CRLF, line ends of the edit are CRLF as well.
//
// # What is passed over
//
// Walks leave out Config.Skip, which is .git unless something else is said, and nothing writes into Config.Protect,
// which is .git too: who writes there can have commands run by the next git that is started. Links are resolved
// for that, but a process that changes them at that very moment may get past it, though never out of the root. A .gitignore
// is not read. The tools that search have a time limit, Config.SearchTimeout; methods end with their context.
//
// # Failure
//
// What a model can do something about is an *Error, and comes from a tool as an answer that says failed, so that it is
// not retried. Methods return ctx's error when that is done.
//
// # Concurrency
//
// A Tree is safe for concurrent use. Close it when no run uses it any more.
package files
