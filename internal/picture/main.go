// Command picture draws docs/picture.svg for the README: output lines of examples/quickstart, as a terminal shows
// them.
//
//	go run ./internal/picture
package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"
)

// file is the picture's path, relative to the module root.
const file = "docs/picture.svg"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	output, err := runQuickstart(ctx, ".")
	if err != nil {
		return err
	}
	lines, err := chooseLines(output)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(drawLines(lines)), 0o644)
}

// runQuickstart runs the example at the module root and returns its output.
func runQuickstart(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "./examples/quickstart")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go run ./examples/quickstart: %w", err)
	}
	return string(output), nil
}

// shown lists the steps in the picture: one with a denied call, one after which a hook keeps the agent going, one
// with a rewritten call.
var shown = []string{"step 4 ", "step 5 ", "step 6 ", "step 7 "}

// chooseLines returns the lines of the shown steps. It fails if they lack a decision that the picture must show.
func chooseLines(output string) ([]string, error) {
	lines := []string{"$ go run ./examples/quickstart", "…"}
	for paragraph := range strings.SplitSeq(output, "\n\n") {
		if slices.ContainsFunc(shown, func(step string) bool { return strings.HasPrefix(paragraph, step) }) {
			lines = append(append(lines, ""), strings.Split(paragraph, "\n")...)
		}
	}
	for _, glyph := range []string{"✓", "✗", "✎", "↺"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, glyph) }) {
			return nil, fmt.Errorf("no line of the steps %q has %s: choose other steps", shown, glyph)
		}
	}
	return lines, nil
}

// Sizes in pixels. A letter is 0.6 times as wide as the font size.
const (
	fontSize, letter, lineHeight, margin = 14, 8.43, 20, 24
	background, foreground               = "#14181f", "#d7dce3"
)

// colours maps the first glyph of a line to the line's colour.
var colours = map[string]string{"✓": "#7fd17f", "✗": "#f07178", "✎": "#ffcb6b", "↺": "#ffcb6b", "$": "#89b4fa", "…": "#7a8493"}

// drawLines returns the lines as an SVG. A line that continues a decision has the decision's colour.
func drawLines(lines []string) string {
	widest := 0
	for _, line := range lines {
		widest = max(widest, utf8.RuneCountInString(line))
	}
	width, height := int(float64(widest)*letter)+2*margin, len(lines)*lineHeight+2*margin
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", width, height)
	svg.WriteString("<title>An agent at work: a hook denies a call, one keeps the agent from stopping, one rewrites a call</title>\n")
	fmt.Fprintf(&svg, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	svg.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" `)
	fmt.Fprintf(&svg, `font-size="%d" xml:space="preserve" style="white-space: pre">`+"\n", fontSize)
	decision := ""
	for i, line := range lines {
		colour := foreground
		switch text := strings.TrimSpace(line); {
		case text == "" || strings.HasPrefix(text, "step "):
			decision = ""
		default:
			first, _ := utf8.DecodeRuneInString(text)
			if known, ok := colours[string(first)]; ok {
				colour, decision = known, known
			} else if decision != "" {
				colour = decision
			}
		}
		weight := ""
		if strings.HasPrefix(line, "step ") {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(&svg, `<text x="%d" y="%d" fill="%s"%s>`, margin, margin+(i+1)*lineHeight-5, colour, weight)
		_ = xml.EscapeText(&svg, []byte(line))
		svg.WriteString("</text>\n")
	}
	svg.WriteString("</g>\n</svg>\n")
	return svg.String()
}
