package mcp

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a server writes, the session gets nothing but answers to its requests, questions, and that tools changed.
func FuzzWhatAServerWrites(f *testing.F) {
	for _, text := range []string{
		"", "\n\n\r\n", "Server is running\n", "[]\n{}\nnull\n7\n", "{\"jsonrpc\":\"2.0\"",
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1e9}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":"much"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n" + `{"jsonrpc":"2.0","method":"ping","id":1}`,
		strings.Repeat("x", 3000) + "\n", strings.Repeat("[", 500), "\xff\xfe\x00\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &process{said: &tail{}, broken: make(chan struct{}), exited: make(chan struct{})}
		close(p.exited)
		l := newLines(p, Server{MaxMessageBytes: 2048})
		l.reader = bufio.NewReader(strings.NewReader(text))
		g := newGate(nil, Server{MaxMessageBytes: 2048}, &news{}, func(string) {})
		g.Connection = l
		_, reports, stop := g.news.follow()
		defer stop()
		one, err := jsonrpc.MakeID(1.0)
		require.NoError(t, err)
		g.awaited[one] = "initialize"
		changed := 0
		for answers := 0; ; {
			m, err := g.Read(t.Context())
			if err != nil {
				break
			}
			switch m := m.(type) {
			case *jsonrpc.Response:
				answers++
				assert.Equal(t, one, m.ID)
				assert.Equal(t, 1, answers)
			case *jsonrpc.Request:
				if !m.IsCall() {
					changed++
					assert.Equal(t, "notifications/tools/list_changed", m.Method)
				}
			}
		}
		assert.LessOrEqual(t, changed, 1)
		assert.LessOrEqual(t, len(reports), reportRoom)
		assert.LessOrEqual(t, len(p.said.kept), tailBytes)
	})
}

// Whatever is in a schema: it is refused, or it is told as it is and takes at least what the server's own takes.
func FuzzInputSchema(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`, `{"$ref":"#"}`, `{"$ref":7}`, `{"items":[{"not":{}}]}`,
		`{"patternProperties":{"(?!x)":7}}`, `{"oneOf":[{"pattern":"(?!x)"}],"anyOf":7}`, `{"$schema":"x:y"}`, `{"type":["object","null"]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var given any
		if json.Unmarshal([]byte(text), &given) != nil {
			return
		}
		told, checked, err := inputSchema(given)
		if err != nil {
			return
		}
		assert.True(t, json.Valid([]byte(told)))
		assert.NotNil(t, checked)
		loose, ok := loosenSchema(given).(map[string]any)
		if ok {
			assert.Equal(t, loose, loosenSchema(loose), "loosened twice")
		}
	})
}
