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

// newOwner returns a name for this process: its place, its process id, and a random part.
func newOwner() string {
	return fmt.Sprintf("%s/%d/%s", currentPlace(), os.Getpid(), rand.Text()[:8])
}

// currentPlace returns a name for the scope in which process ids are unique: this boot of this
// machine, and this process namespace. If that is unknown, it returns a name that no other
// process has.
func currentPlace() string {
	host, _ := os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, alsoErr := os.Readlink("/proc/self/ns/pid")
	if err != nil || alsoErr != nil || len(boot) < 8 {
		return cmp.Or(host, "host") + "-" + rand.Text()[:8]
	}
	return cmp.Or(host, "host") + "-" + string(boot[:8]) + "-" + strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
}

// hasExited reports whether the process with an owner's name has ended. It returns false for
// names that newOwner did not create in this place.
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
	defer process.Release() //nolint:errcheck // the process was only checked
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
