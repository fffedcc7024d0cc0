package files

import (
	"os"
	"slices"
	"syscall"
)

// isKernelFile reports whether a file is on one of the kernel's virtual file systems. Such files look like regular
// files, but can hold processes' secrets, block, or have side effects when they are read. The root contains such files
// if it is / or if a virtual file system is mounted below it.
func isKernelFile(f *os.File) bool {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
		return true
	}
	return slices.Contains([]int64{
		0x9fa0,     // proc
		0x62656572, // sysfs
		0x64626720, // debugfs
		0x74726163, // tracefs
		0x73636673, // securityfs
		0x6165676c, // pstore
		0xcafe4a11, // bpf
		0xde5e81e4, // efivarfs
		0x62656570, // configfs
	}, int64(s.Type)&0xffffffff) //nolint:unconvert // on some machines, Type has 32 bits and is signed
}
