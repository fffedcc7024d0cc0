package cli

import (
	"cmp"
	"os/user"
)

// userName returns the default name for answers.
func userName() string {
	if u, err := user.Current(); err == nil {
		return cmp.Or(u.Username, "unknown")
	}
	return "unknown"
}

// identityName returns the verified name of the user: that of the operating system; empty when it is unknown.
func identityName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
