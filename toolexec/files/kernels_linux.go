package files

import (
	"os"
	"slices"
	"syscall"
)

// isKernelFile reports whether a file is on a virtual file system of the kernel: such files look like regular files,
// but can hold the secrets of processes, block, or have side effects when they are read. The root contains such files
// if a virtual file system is mounted below it, or if it is /.
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
