package pii

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Strategy says how to treat personal data.
type Strategy string

const (
	// Redact replaces the value with its kind: [EMAIL].
	Redact Strategy = "redact"
	// Mask replaces most of the value with stars.
	Mask Strategy = "mask"
	// Hash replaces the value with its kind and a keyed hash, which is the same for the same value.
	Hash Strategy = "hash"
	// Block withholds the whole text with the value.
	Block Strategy = "block"
)

// instead returns a finding's replacement. A piece with several overlapping findings is hidden completely.
func (f *Filter) instead(p found, value string) string {
	d := p.of
	kind := strings.ToUpper(d.kind)
	strategy := f.strategyOf(d.kind)
	if len(p.also) > 0 {
		strategy = Redact
	}
	switch strategy {
	case Mask:
		return maskValue(d.kind, value)
	case Hash:
		mac := hmac.New(sha256.New, f.key)
		mac.Write([]byte(d.kind + "\x00" + d.normal(value)))
		return "[" + kind + ":" + hex.EncodeToString(mac.Sum(nil)[:6]) + "]"
	default:
		return "[" + kind + "]"
	}
}

func maskValue(kind, value string) string {
	switch kind {
	case "email":
		local, domain, _ := strings.Cut(value, "@")
		first, _ := utf8.DecodeRuneInString(local)
		return string(first) + "***@" + domain
	case "ip":
		if ip, err := netip.ParseAddr(value); err == nil && ip.Is4() {
			parts := strings.Split(value, ".")
			return parts[0] + "." + parts[1] + ".*.*"
		}
		parts := strings.Split(value, ":")
		return parts[0] + ":" + parts[1] + ":*"
	}
	shown := 4
	if len(only(value, isAlnum)) < 12 {
		shown = 2
	}
	return starText(value, shown)
}

// starText returns a value with stars for all but its last letters and digits.
func starText(value string, shown int) string {
	hidden := utf8.RuneCountInString(only(value, isAlnum)) - shown
	return strings.Map(func(r rune) rune {
		if !isAlnum(r) {
			return r
		}
		if hidden--; hidden >= 0 {
			return '*'
		}
		return r
	}, value)
}
