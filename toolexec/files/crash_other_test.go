//go:build !unix

package files_test

func crash(string) {}
