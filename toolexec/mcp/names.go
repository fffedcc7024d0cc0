package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/samber/lo"
)

const (
	maxName       = 64 // the common model services' maximum
	maxServerName = 32 // leaves room for the tool
)

// sanitizeName returns a name with _ for every character that model services do not accept.
func sanitizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// toolNames returns the model's names for a server's tools: mcp__server__tool. A name that would be too long, or the
// same as another tool's name, ends in _ and eight hex digits. They come from the SHA-256 of the server's own name for
// the tool, so the name does not depend on the list's order.
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

// ToolName returns the model's name for a server's tool, for programs that judge its calls without a Client. It returns
// an error if the server's name cannot be a part of it.
func ToolName(server, tool string) (string, error) {
	return toolNames(server, []string{tool})[0], checkName(server)
}

// checkName returns an error for a server's name that cannot be a part of its tools' names.
func checkName(server string) error {
	if server == "" || len(server) > maxServerName || sanitizeName(server) != server || strings.Contains("_"+server+"_", "__") {
		return fmt.Errorf("the name must be 1 to %d letters, digits, - and single _ between them, to be a part of tool names", maxServerName)
	}
	return nil
}
