package library

// Versions returns the versions of a policy.
func Versions(name string) []string { return versionsIn(files, name) }
