package pipeline

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/pipeline"
)

// graphFormats are the formats of graphs.
var graphFormats = map[string]func(p *pipeline.Pipeline) string{"text": treeOf, "mermaid": mermaidOf, "svg": svgOf}

var graphNames = []string{"text", "mermaid", "svg"}

func (p *pipelines) newGraph() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw the stages of a pipeline",
		Long: `Draw the stages of a pipeline, with what runs in them and when they are complete: as text, as a Mermaid flowchart, which GitHub
and many editors show as a picture, or as a picture in SVG.`,
		Example: `  grapnel pipeline graph pipeline.yaml
  grapnel pipeline graph pipeline.yaml --format svg > pipeline.svg`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			draw, known := graphFormats[format]
			if !known {
				return console.Usagef("--format: %s", yamlfile.Unknown("format", format, graphNames))
			}
			loaded, err := loadPipeline(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Std.Out, draw(loaded))
			return err
		},
	}
	c.Flags().StringVar(&format, "format", "text", "the `format`: text, mermaid or svg")
	return c
}

// treeOf returns a pipeline as an indented list.
func treeOf(p *pipeline.Pipeline) string {
	var b strings.Builder
	var width int
	for _, s := range p.Stages {
		width = max(width, utf8.RuneCountInString(s.Name))
		for _, part := range s.Parallel {
			width = max(width, utf8.RuneCountInString(part.Name)+3)
		}
	}
	b.WriteString(p.Name + "\n")
	line := func(indent, branch string, s *pipeline.Stage) {
		name := fmt.Sprintf("%-*s", width-utf8.RuneCountInString(indent), s.Name)
		does := whatRuns(s)
		if len(s.Parallel) == 0 {
			does += ", " + s.Ends()
		}
		fmt.Fprintf(&b, "%s%s%s  %s\n", indent, branch, name, timeline.Clean(does))
	}
	branch := func(i, n int) (own, below string) {
		if i == n-1 {
			return "└─ ", "   "
		}
		return "├─ ", "│  "
	}
	for i := range p.Stages {
		own, below := branch(i, len(p.Stages))
		line("", own, &p.Stages[i])
		for k := range p.Stages[i].Parallel {
			own, _ := branch(k, len(p.Stages[i].Parallel))
			line(below, own, &p.Stages[i].Parallel[k])
		}
	}
	return b.String()
}

// mermaidOf returns a pipeline as a Mermaid flowchart.
func mermaidOf(p *pipeline.Pipeline) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n  start([" + mermaidText(p.Name) + "])\n")
	before := []string{"start"}
	arrows := func(to string) {
		for _, from := range before {
			fmt.Fprintf(&b, "  %s --> %s\n", from, to)
		}
	}
	for i := range p.Stages {
		s, id := &p.Stages[i], fmt.Sprintf("s%d", i+1)
		if len(s.Parallel) == 0 {
			fmt.Fprintf(&b, "  %s[%s]\n", id, mermaidText(s.Name+"\n"+whatRuns(s)+"\n"+s.Ends()))
			arrows(id)
			before = []string{id}
			continue
		}
		var parts []string
		fmt.Fprintf(&b, "  subgraph %s[%s]\n", id, mermaidText(s.Name))
		for k := range s.Parallel {
			part := fmt.Sprintf("%s_%d", id, k+1)
			fmt.Fprintf(&b, "    %s[%s]\n", part, mermaidText(s.Parallel[k].Name+"\n"+whatRuns(&s.Parallel[k])+"\n"+s.Parallel[k].Ends()))
			parts = append(parts, part)
		}
		b.WriteString("  end\n")
		for _, part := range parts {
			arrows(part)
		}
		before = parts
	}
	b.WriteString("  finish([end])\n")
	arrows("finish")
	return b.String()
}

// mermaidText quotes a text for Mermaid.
func mermaidText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;").Replace(timeline.Clean(line))
	}
	return "\"" + strings.Join(lines, "<br/>") + "\""
}

// The sizes in pictures, in pixels. Characters have a fixed width.
const (
	charWidth  = 7.8
	lineHeight = 18
	padding    = 12
	distance   = 32
)

// svgBox is the box of a stage in a picture.
type svgBox struct {
	lines         []string
	parts         []svgBox // side by side
	x, y          int
	width, height int
}

// newBox returns the box of a stage, which has a size and no place yet.
func newBox(s *pipeline.Stage) svgBox {
	if len(s.Parallel) == 0 {
		return textBox(s.Name, whatRuns(s), s.Ends())
	}
	box := textBox(s.Name)
	width := padding
	tallest := 0
	for i := range s.Parallel {
		part := newBox(&s.Parallel[i])
		part.x, part.y = width, box.height
		width, tallest = width+part.width+padding, max(tallest, part.height)
		box.parts = append(box.parts, part)
	}
	box.width, box.height = max(box.width, width), box.height+tallest+padding
	return box
}

// textBox returns a box with lines of text.
func textBox(lines ...string) (box svgBox) {
	for _, line := range lines {
		line = timeline.Clean(line)
		box.lines = append(box.lines, line)
		box.width = max(box.width, int(float64(utf8.RuneCountInString(line))*charWidth)+2*padding)
	}
	box.height = len(lines)*lineHeight + padding
	return box
}

// draw writes the box, moved by x and y.
func (box svgBox) draw(b *strings.Builder, class string, x, y int) {
	x, y = x+box.x, y+box.y
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", class, x, y, box.width, box.height)
	for i, line := range box.lines {
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(b, `<text x="%d" y="%d"%s>`, x+padding, y+padding/2+(i+1)*lineHeight-5, weight)
		_ = xml.EscapeText(b, []byte(line)) // a builder takes everything
		b.WriteString("</text>\n")
	}
	for _, part := range box.parts {
		part.draw(b, "part", x, y)
	}
}

const svgStyle = `<style>
svg{background:#fff;color:#1a1a1a}rect{fill:#f4f6f8;stroke:#7a8794}.end{fill:none;stroke:none}.block{fill:none;stroke-dasharray:5 4}
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:currentColor}line{stroke:#7a8794}path{fill:#7a8794}
@media(prefers-color-scheme:dark){svg{background:#16191d;color:#e6e6e6}rect{fill:#23282e}}
</style>
`

// svgOf returns a pipeline as a picture in SVG.
func svgOf(p *pipeline.Pipeline) string {
	boxes := []svgBox{textBox(p.Name)}
	for i := range p.Stages {
		boxes = append(boxes, newBox(&p.Stages[i]))
	}
	boxes = append(boxes, textBox("end"))
	width, height := 0, padding
	for _, box := range boxes {
		width, height = max(width, box.width), height+box.height+distance
	}
	width, height = width+2*padding, height-distance+padding
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n"+svgStyle, width, height, width, height)
	y := padding
	for i, box := range boxes {
		if i > 0 {
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d"/><path d="M%d %d l-5 -8 h10 z"/>`+"\n",
				width/2, y-distance, width/2, y-4, width/2, y)
		}
		class := "stage"
		switch {
		case i == 0 || i == len(boxes)-1:
			class = "end"
		case len(box.parts) > 0:
			class = "block"
		}
		box.draw(&b, class, (width-box.width)/2, y)
		y += box.height + distance
	}
	b.WriteString("</svg>\n")
	return b.String()
}
