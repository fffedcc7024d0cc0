package toolexec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// said returns what the model is told of an answer, under a limit.
func said(t testing.TB, limit int, content agent.Content) agent.Content {
	t.Helper()
	e := executor(t, toolexec.Options{Policy: toolexec.Policy{MaxResultBytes: limit}}, saying(content, nil))
	return answer(t, t.Context(), e, call("say", ``)).Content
}

func TestLongAnswersKeepHeadAndTail(t *testing.T) {
	text := strings.Repeat("a", 500) + strings.Repeat("z", 500)
	got := said(t, 100, agent.TextContent(text)).Text()
	assert.Equal(t, strings.Repeat("a", 30)+"\n[… 939 of 1000 bytes left out …]\n"+strings.Repeat("z", 31), got)
}

// shownByDefault is how many bytes of an answer the model is shown where no policy says otherwise.
const shownByDefault = 64 << 10

func TestResultLimits(t *testing.T) {
	long := strings.Repeat("x", shownByDefault+1)
	exact := long[1:]
	same := func(want, got string) { // does not print them
		t.Helper()
		if want != got {
			t.Errorf("got %d bytes, want other %d", len(got), len(want))
		}
	}
	same(exact, said(t, 0, agent.TextContent(exact)).Text())
	assert.LessOrEqual(t, len(said(t, 0, agent.TextContent(long)).Text()), shownByDefault)
	same(long, said(t, -1, agent.TextContent(long)).Text())
	assert.Equal(t, "xxx", said(t, 3, agent.TextContent(long)).Text(), "no room for words")

	failed := answer(t, t.Context(), executor(t, toolexec.Options{}, saying("", errors.New(long))), call("say", ``))
	assert.LessOrEqual(t, len(failed.Text()), shownByDefault)
	assert.True(t, strings.HasPrefix(failed.Text(), `tool "say": failed: xxx`))
}

func TestAnswersAreText(t *testing.T) {
	assert.Equal(t, "a\uFFFDb", said(t, 0, agent.TextContent("a\xff\xfeb")).Text())
	assert.Equal(t, "a\uFFFDb", said(t, 0, agent.ContentOf(agent.Text("a\xff"), agent.Text("b"))).Text())
}

func TestImagesAreNotCut(t *testing.T) {
	image := agent.Image("image/png", []byte("many bytes"))
	got := said(t, 60, agent.ContentOf(
		agent.Text(strings.Repeat("a", 100)), agent.Text(strings.Repeat("b", 100)), image, agent.Text(strings.Repeat("c", 100))))
	var parts []agent.Part
	for _, p := range got.Parts() {
		parts = append(parts, p)
	}
	want := []agent.Part{
		agent.Text(strings.Repeat("a", 11) + "\n[… 277 of 300 bytes left out …]\n"), image, agent.Text(strings.Repeat("c", 12)),
	}
	assert.Equal(t, want, parts)
}

func TestResultLimitNeverCutsARune(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.String(), 0, 12).Draw(rt, "pieces")
		if len(pieces) > 0 && rapid.Bool().Draw(rt, "long") {
			i := rapid.IntRange(0, len(pieces)-1).Draw(rt, "which")
			pieces[i] = strings.Repeat(pieces[i], rapid.IntRange(1, 100).Draw(rt, "times"))
		}
		limit := rapid.IntRange(1, 400).Draw(rt, "limit")
		whole := strings.Join(pieces, "")
		parts := make([]agent.Part, len(pieces))
		for i, piece := range pieces {
			parts[i] = agent.Text(piece)
		}
		for _, content := range []agent.Content{agent.TextContent(whole), agent.ContentOf(parts...)} {
			got := said(t, limit, content).Text()
			if len(whole) <= limit {
				assert.Equal(rt, whole, got)
				continue
			}
			assert.LessOrEqual(rt, len(got), limit)
			assert.Greater(rt, len(got), limit-2*utf8.UTFMax-2*len("100000"), "as much as fits")
			assert.True(rt, utf8.ValidString(got))
			head, tail, noted := strings.Cut(got, "\n[… ")
			if !noted {
				assert.True(rt, strings.HasPrefix(whole, got))
				continue
			}
			var missing, total int
			_, err := fmt.Sscanf(tail, "%d of %d bytes left out", &missing, &total)
			assert.NoError(rt, err)
			_, tail, _ = strings.Cut(tail, "…]\n")
			assert.True(rt, strings.HasPrefix(whole, head))
			assert.True(rt, strings.HasSuffix(whole, tail))
			assert.Equal(rt, len(whole), total)
			assert.Equal(rt, len(whole)-len(head)-len(tail), missing)
		}
	})
}
