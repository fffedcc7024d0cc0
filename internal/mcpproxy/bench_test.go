//go:build unix

package mcpproxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCall measures a call over stdio, with and without the proxy in front of the server.
func BenchmarkCall(b *testing.B) {
	for name, proxied := range map[string]bool{"direct": false, "proxied": true} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, "", rules)
			c := f.raw(b, "hostile", proxied)
			for b.Loop() {
				c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"Carl","amount":5}}}`)
				if line := c.hear(); !strings.Contains(line, "good") {
					b.Fatal(line)
				}
			}
			_, err := c.close()
			require.NoError(b, err)
		})
	}
}
