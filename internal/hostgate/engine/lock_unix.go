//go:build unix

package engine

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file, unless another process has it.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
