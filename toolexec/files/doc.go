// Package files gives an agent tools that can access only the files below one directory: read_file, write_file,
// edit_file, list_files, glob and grep. A Tree has a method for each of these tools.
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
// A path is relative to the root, with slashes. An absolute path is accepted if it begins with the root, and is then
// converted to a relative one. Paths are cleaned before anything is opened, so link/../a is always a, also if link is a
// symbolic link. In results paths are relative and sorted; a name that is not UTF-8 or has control characters is shown
// quoted, and cannot be requested.
//
// # Confinement
//
// Everything is opened through an os.Root: neither .. nor a symbolic link leads out of it, even if another process
// changes the tree between a check and its use. Absolute links are refused even if they lead back into the root. Only
// regular files and directories are opened: pipes, devices, sockets and the kernel's own files (/proc, /sys) are
// refused, without waiting for a process at the other end. Walks do not follow links.
//
// Two things cannot be detected: a hard link, which is the file itself under another name, and file systems that are
// mounted into the tree. Writing to a file with several hard links does not change it under its other names, because
// writing replaces the file by a new one.
//
// # Reading
//
// Sizes are limited, and the answer says what was omitted and how to get it. Binary files, which have a NUL byte in
// their first 8000 bytes, are not shown; bytes that are not UTF-8 are shown as �. Lines that end in CRLF are shown
// without the CR.
//
// # Writing
//
// A file is written under a temporary name in its directory, synced and renamed: readers see the old file or the new
// one, also after a crash, and after an error no temporary file remains. (A process that is killed can leave a file
// named .grapnel-….tmp.) Mode and, if the process may set it, owner are kept; a link is followed and stays a link.
// Writes of one Tree run one after the other, so that parallel edits of a file do not get lost. To detect changes by
// other processes, pass the hash that read_file returns to write_file and edit_file.
//
// An edit replaces a text that occurs exactly once, or all of its occurrences if requested. All other bytes of the file
// stay unchanged; if the file has CRLF, line ends of the edit are CRLF as well.
//
// # Skipped and protected files
//
// Walks skip the names in Config.Skip, by default .git. Nothing writes into the names in Config.Protect, by default
// also .git: a file written there could make the next git command run other commands. Links are resolved for this
// check. A process that changes a link at that moment can bypass the check, but cannot make a write leave the root. A
// .gitignore is not read. The tools that search have a time limit, Config.SearchTimeout; methods return when their
// context is done.
//
// # Failure
//
// A problem that a model can act on is an *Error; a tool returns it as an answer with Failed set, so that it is not
// retried. Methods return ctx's error when ctx is done.
//
// # Concurrency
//
// A Tree is safe for concurrent use. Close it when no run uses it any more.
package files
