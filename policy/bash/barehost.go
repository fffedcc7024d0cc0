package bash

import (
	"net/netip"
	"strings"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

// A program that is not known may reach a machine that its words name without a scheme. A word is taken for one when it is an
// address, or when its last label is a domain in which names are registered. Of the country codes, those that also end the
// names of files are left out (main.py, lib.rs, run.sh): more words than hosts look so. What an option or a variable names
// that says host is a host in any form.

// bareHost returns the host that a word names.
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
	plainUser  = lazy.Regexp(`^[A-Za-z0-9._-]*$`)
	hostName   = lazy.Regexp(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)+$`)
	anyHost    = lazy.Regexp(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\.?(:[0-9]+)?$`)
	oldAddress = lazy.Regexp(`^(0x[0-9a-f]{7,8}|[0-9a-fx]+(\.[0-9a-fx]+)*\.0x[0-9a-f]+(\.[0-9a-fx]+)*|0x[0-9a-f]+(\.[0-9a-fx]+)+)$`)
	saysHost   = lazy.Regexp(`(?i)(^|[_-])(hosts?|hostname|servers?|url|uri|endpoint|proxy|registry|addr|connect|peer|upstream|brokers?|keyserver|dsn)$`)
)

// isRegistryDomain reports a top-level domain in which names are registered, or that is kept for examples and networks of one's own.
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

// namesNoHosts reports programs in whose words names with dots are something else: mail addresses and branches, kinds of resources,
// packages and classes.
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

// bareHosts notes the hosts that a piece of a word names without a scheme. A name is that of the option or variable that the piece is
// the value of, if it is one.
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
