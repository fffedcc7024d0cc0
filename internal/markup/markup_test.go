package markup_test

import (
	"fmt"
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/markup"
)

func Example() {
	var p markup.Page
	p.Put(`<td title="%s">%s</td>%s`, `"><script>`, "a < b", markup.HTML("<br>"))
	p.PutIf(false, "<p>%s</p>", "nothing of this")
	fmt.Println(p.String())
	// Output: <td title="&#34;&gt;&lt;script&gt;">a &lt; b</td><br>
}

// FuzzPut compares with html/template, in text and in attributes.
func FuzzPut(f *testing.F) {
	for _, text := range []string{"", "a", `<script>alert("x")</script>`, `' onload='x`, "\x00&amp;", "\xff\xfe", "a+b", "`", "${x}"} {
		f.Add(text)
	}
	page := template.Must(template.New("page").Parse(`<p class="{{.}}">{{.}}</p><textarea>{{.}}</textarea>`))
	f.Fuzz(func(t *testing.T, text string) {
		var want strings.Builder
		assert.NoError(t, page.Execute(&want, text))
		var p markup.Page
		p.Put(`<p class="%s">%s</p><textarea>%s</textarea>`, text, text, text)
		// It also escapes a plus sign, for browsers that guess UTF-7; our pages say what they are.
		assert.Equal(t, strings.ReplaceAll(want.String(), "&#43;", "+"), p.String())
	})
}
