package durable

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// newOwner returns a name for this process: where it runs, its id, and a random part.
func newOwner() string {
	return fmt.Sprintf("%s/%d/%s", currentPlace(), os.Getpid(), rand.Text()[:8])
}

// currentPlace says where process ids mean what they mean here: this start of this machine, and
// this namespace of it. Where that is not known it is a name that no other process has.
func currentPlace() string {
	host, _ := os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, alsoErr := os.Readlink("/proc/self/ns/pid")
	if err != nil || alsoErr != nil || len(boot) < 8 {
		return cmp.Or(host, "host") + "-" + rand.Text()[:8]
	}
	return cmp.Or(host, "host") + "-" + string(boot[:8]) + "-" + strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
}

// hasExited reports whether the process behind an owner's name has ended: only for names that
// newOwner made in this place. Of any other it is not known.
func hasExited(owner, self string) bool {
	parts, own := strings.Split(owner, "/"), strings.Split(self, "/")
	if len(parts) != 3 || len(own) != 3 || parts[0] != own[0] {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 || pid == os.Getpid() {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release() //nolint:errcheck // it was only looked at
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
