package files

import (
	"os"
	"slices"
	"syscall"
)

// isKernelFile reports whether a file is on a virtual file system of the kernel: such files look like regular ones, but
// hold the secrets of processes, block, or act when they are read. It matters if such a file system is mounted below
// the root, or the root is /.
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
	}, int64(s.Type)&0xffffffff) //nolint:unconvert // it has 32 bits on some machines, and a sign
}
