package library

// Versions returns a policy's versions.
func Versions(name string) []string { return versionsIn(files, name) }
