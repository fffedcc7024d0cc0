package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/samber/lo"
)

const (
	maxName       = 64 // what the common model services take
	maxServerName = 32 // leaves room for the tool
)

// sanitizeName returns a name with _ for everything that model services do not take.
func sanitizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// toolNames returns the names that the model knows the tools of a server by: mcp__server__tool. A tool whose own name had
// to be changed, so that it would be too long otherwise or another tool's, ends in _ and eight hex digits of its own
// name's SHA-256: the name of a tool depends neither on the order of the list nor on the day.
func toolNames(server string, tools []string) []string {
	prefix := "mcp__" + server + "__"
	plain := lo.Map(tools, func(tool string, _ int) string { return prefix + sanitizeName(tool) })
	taken := lo.CountValues(plain)
	return lo.Map(tools, func(tool string, i int) string {
		changed := plain[i] != prefix+tool
		if len(plain[i]) <= maxName && (!changed || taken[plain[i]] == 1) {
			return plain[i]
		}
		sum := sha256.Sum256([]byte(tool))
		mark := "_" + hex.EncodeToString(sum[:4])
		return plain[i][:min(len(plain[i]), maxName-len(mark))] + mark
	})
}
