package console

import (
	"cmp"
	"os/user"
)

// UserName returns the default name for answers.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return cmp.Or(u.Username, "unknown")
	}
	return "unknown"
}

// IdentityName returns the user's name in the operating system, which counts as verified; empty when it is unknown.
func IdentityName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
