package bash

import (
	"net/netip"
	"strings"
)

// An unknown program may reach a host that its words name without a scheme. A word counts as a host if it is an
// address, or if its last label is a top-level domain in which names are registered. Country codes that are also file
// extensions are excluded (main.py, lib.rs, run.sh), because such words are usually files. The value of an option or
// variable whose name says host always counts as a host.

// bareHost returns the host and port that a word names without a scheme.
func bareHost(text string) (name, port string, found bool) {
	text = strings.TrimPrefix(text, "//")
	if i := strings.IndexAny(text, "/?#"); i > 0 {
		text = text[:i]
	}
	if user, rest, at := strings.Cut(text, "@"); at && plainUser().MatchString(user) {
		text = rest
	}
	if inner, rest, bracketed := strings.Cut(strings.TrimPrefix(text, "["), "]"); bracketed && strings.HasPrefix(text, "[") {
		_, err := netip.ParseAddr(inner)
		return inner, strings.TrimPrefix(rest, ":"), err == nil
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return text, "", !address.IsUnspecified()
	}
	name, port, _ = strings.Cut(text, ":")
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		return name, port, !address.IsUnspecified()
	}
	if oldAddress().MatchString(name) {
		return name, port, true
	}
	last := strings.LastIndexByte(name, '.')
	return name, port, last > 0 && hostName().MatchString(name) && isRegistryDomain(name[last+1:])
}

var (
	plainUser  = lazyRegexp(`^[A-Za-z0-9._-]*$`)
	hostName   = lazyRegexp(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)+$`)
	anyHost    = lazyRegexp(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\.?(:[0-9]+)?$`)
	oldAddress = lazyRegexp(`^(0x[0-9a-f]{7,8}|[0-9a-fx]+(\.[0-9a-fx]+)*\.0x[0-9a-f]+(\.[0-9a-fx]+)*|0x[0-9a-f]+(\.[0-9a-fx]+)+)$`)
	saysHost   = lazyRegexp(`(?i)(^|[_-])(hosts?|hostname|servers?|url|uri|endpoint|proxy|registry|addr|connect|peer|upstream|brokers?|keyserver|dsn)$`)
)

// isRegistryDomain reports whether label is a top-level domain in which names are registered, or one reserved for
// examples or private networks.
func isRegistryDomain(label string) bool {
	switch label {
	case "com", "net", "org", "edu", "gov", "mil", "int", "biz", "io", "ai", "co", "dev", "app", "cloud", "xyz", "online", "site", "tech", "store", "shop",
		"blog", "live", "click", "top", "club", "icu", "vip", "today", "space", "website", "design", "agency", "digital", "network", "systems",
		"host", "email", "link", "win", "loan", "tv", "us", "uk", "de", "fr", "nl", "eu", "ru", "cn", "jp", "kr", "br", "au", "ca", "ch", "at",
		"be", "dk", "fi", "no", "se", "cz", "es", "it", "pt", "gr", "hu", "ro", "ua", "tr", "il", "ir", "sa", "ae", "za", "mx", "ar", "pe", "ve", "nz", "sg",
		"hk", "tw", "th", "vn", "my", "pk", "bd", "lk", "ke", "ng", "eg", "is", "ie", "ee", "lv", "lt", "by", "kz", "az", "uz", "ws", "to", "gg", "im", "je",
		"lu", "li", "sk", "si", "hr", "ba", "al", "bg", "me", "gl", "fo", "cx", "ga", "gq", "nu", "onion", "example", "invalid", "internal", "intranet", "lan",
		"home", "corp", "arpa":
		return true
	}
	return false
}

// namesNoHosts reports whether this program's words with dots are not hosts but mail addresses, branches, resource
// kinds, packages or classes.
func (w *walker) namesNoHosts(command int) bool {
	if command < 0 || command >= len(w.out.Commands) {
		return false
	}
	switch c := w.out.Commands[command]; c.Name {
	case "git", "kubectl", "oc", "helm", "gsettings", "dbus-send", "gdbus", "flatpak":
		return true
	case "go":
		return c.Sub != "get" && c.Sub != "install" && c.Sub != "run" && c.Sub != "list" && !strings.HasPrefix(c.Sub, "mod")
	}
	return false
}

// bareHosts records the hosts that part of a word names without a scheme. Name is the name of the option or variable
// whose value the part is, if any.
func (w *walker) bareHosts(name, text string, a Word, command int) {
	if !isKnown(text) || len(text) > maxName {
		return
	}
	host, port, found := bareHost(text)
	switch {
	case found && !w.namesNoHosts(command):
	case saysHost().MatchString(strings.TrimLeft(name, "-")) && anyHost().MatchString(text) && !harmlessValue().MatchString(text) && text != "0.0.0.0":
		host, port, _ = strings.Cut(strings.ToLower(strings.TrimSuffix(text, ".")), ":")
	default:
		return
	}
	w.noteHost(Host{Name: host, Port: port, Command: command, Word: a, Pos: a.Pos})
}
