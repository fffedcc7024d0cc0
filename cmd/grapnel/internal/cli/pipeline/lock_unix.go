//go:build unix

package pipeline

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockSession locks the directory of a session until unlock is called or the process ends.
func lockSession(dir string) (unlock func(), err error) {
	file, err := sessionBase().Open(lockPath(dir), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("locking it: %w", err)
	}
	for range 10 { // another command may be looking whether it is locked
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another process runs it")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// isLocked reports whether a process has the lock of a session.
func isLocked(dir string) bool {
	file, err := sessionBase().Open(lockPath(dir), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close() // this ends the lock that it may have taken
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
