package pipeline

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/pipeline"
)

// A pipeline is drawn with its parallel stages, and its texts are not markup.
func TestGraphs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
name: release
stages:
  - {name: plan, command: {argv: ['<b>&"']}, termination: {type: fixed, iterations: 1}}
  - name: both
    parallel:
      - {name: lint, command: {argv: [./lint.sh]}, termination: {type: judgment, confirmations: 1}, max_time: 2h}
      - {name: test, command: {argv: [./test.sh]}, termination: {type: queue, file: todo.txt}}
  - {name: publish, command: {argv: [./publish.sh]}, termination: {type: judgment}}
`), 0o600))
	p, err := pipeline.Load(path, pipeline.LoadOptions{})
	require.NoError(t, err)

	assert.Equal(t, `release
├─ plan     command <b>&", 1 iteration
├─ both     2 stages at the same time
│  ├─ lint  command ./lint.sh, until it decides to stop, at most 25 iterations, at most 2h0m0s
│  └─ test  command ./test.sh, until todo.txt lists nothing, at most 25 iterations
└─ publish  command ./publish.sh, until it decides to stop in 2 iterations in a row, at most 25 iterations
`, treeOf(p))

	mermaid := mermaidOf(p)
	assert.Contains(t, mermaid, `s1["plan<br/>command &lt;b&gt;&amp;&quot;<br/>1 iteration"]`)
	for _, arrow := range []string{"start --> s1", "s1 --> s2_1", "s1 --> s2_2", "s2_1 --> s3", "s2_2 --> s3", "s3 --> finish"} {
		assert.Contains(t, mermaid, "  "+arrow+"\n")
	}

	var texts []string
	boxes := 0
	for decoder := xml.NewDecoder(strings.NewReader(svgOf(p))); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "rect" {
				boxes++
			}
		case xml.CharData:
			texts = append(texts, string(token))
		}
	}
	assert.Equal(t, 7, boxes, "five stages, the start and the end")
	assert.Contains(t, texts, `command <b>&"`)
	assert.Contains(t, texts, "until todo.txt lists nothing, at most 25 iterations")
}
