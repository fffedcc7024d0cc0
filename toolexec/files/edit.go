package files

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// EditArgs are the arguments of Edit.
type EditArgs struct {
	Path       string `json:"path" jsonschema:"the file, relative to the root"`
	OldText    string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file and with enough around it to occur only once"`
	NewText    string `json:"new_text" jsonschema:"the text that replaces old_text"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
	IfHash     string `json:"if_hash,omitempty" jsonschema:"edit only if the file still has this hash, which read_file returned"`
}

// Edit replaces text in a file.
func (t *Tree) Edit(ctx context.Context, in EditArgs) (Written, error) {
	return t.change(ctx, "edit", in.Path, in.IfHash, func(old string, exists bool) (string, []int, error) {
		switch {
		case !exists:
			return "", nil, fs.ErrNotExist
		case in.OldText == "":
			return "", nil, problem("", "", "old_text is empty: write_file writes a whole file")
		case in.OldText == in.NewText:
			return "", nil, problem("", "", "old_text and new_text are the same")
		}
		return replaceText(old, in.OldText, in.NewText, in.ReplaceAll, t.config.MaxWriteBytes)
	})
}

// replaceText returns the text after the edit, and the replacements' line numbers. If the text has CRLF, the search
// treats it as LF, and the replacement gets CRLF. The rest stays unchanged. Results above most bytes are
// refused, because many long replacements could exhaust the memory.
func replaceText(text, from, to string, all bool, most int) (string, []int, error) {
	plain := text
	crlf := strings.Contains(text, "\r\n")
	if crlf {
		plain, from, to = withoutCR(text), withoutCR(from), withoutCR(to)
	}
	places := occurrences(plain, from, all)
	switch {
	case len(places) == 0:
		return "", nil, problem("", "", "old_text is not in the file%s", hint(plain, from))
	case len(places) > 1 && !all:
		return "", nil, problem("", "", "old_text is in the file %s, at %s: include more of the surrounding text, or set replace_all",
			lo.Ternary(strings.Count(plain, from) > 1, strconv.Itoa(strings.Count(plain, from))+" times", "twice, overlapping"),
			linesText(linesAt(plain, places)))
	}
	if size := len(plain) + len(places)*(len(to)-len(from)); size > most {
		return "", nil, tooBig(size, most)
	}
	if !crlf {
		return strings.ReplaceAll(text, from, to), linesAt(plain, places), nil
	}
	to = strings.ReplaceAll(to, "\n", "\r\n")
	var b strings.Builder
	end := 0 // the end of the last replacement in text
	at := 0  // the position in plain; far is the same position in text
	far := 0
	seek := func(place int) int {
		for ; at < place; at, far = at+1, far+1 {
			if plain[at] == '\n' && text[far] == '\r' {
				far++
			}
		}
		return far
	}
	for _, place := range places {
		b.WriteString(text[end:seek(place)])
		b.WriteString(to)
		end = seek(place + len(from))
	}
	b.WriteString(text[end:])
	return b.String(), linesAt(plain, places), nil
}

func withoutCR(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// occurrences returns the positions of part in text. With all, it returns every occurrence, without overlap. Otherwise
// it returns the first ones, with overlap, to detect whether there are several.
func occurrences(text, part string, all bool) (places []int) {
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 || !all && len(places) == linesTold+1 {
			return places
		}
		places = append(places, from+i)
		from += i + lo.Ternary(all, len(part), 1)
	}
}

// linesTold is the maximum number of line numbers that a message lists.
const linesTold = 10

// linesAt returns the line numbers of ascending positions in a text, counted from 1.
func linesAt(text string, places []int) []int {
	line, at := 1, 0
	return lo.Map(places, func(place int, _ int) int {
		line += strings.Count(text[at:place], "\n")
		at = place
		return line
	})
}

func linesText(lines []int) string {
	numbers := lo.Map(lines[:min(len(lines), linesTold)], func(line, _ int) string { return strconv.Itoa(line) })
	return lo.Ternary(len(lines) == 1, "line ", "lines ") + strings.Join(numbers, ", ") + lo.Ternary(len(lines) > linesTold, " …", "")
}

// hint describes similar text in the file: text that differs only in white space, or that has the same first line.
func hint(text, part string) string {
	lines, wanted := strings.Split(text, "\n"), strings.Split(strings.TrimSpace(part), "\n")
	bare := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	wanted = lo.Map(wanted, func(line string, _ int) string { return bare(line) })
	first, effort := 0, 100_000
	for i, line := range lines {
		if effort--; effort < 0 {
			break
		}
		if wanted[0] == "" || !strings.Contains(bare(line), wanted[0]) {
			continue
		}
		if first == 0 {
			first = i + 1
		}
		n := 1
		for n < len(wanted) && i+n < len(lines) && strings.HasPrefix(bare(lines[i+n]), wanted[n]) {
			n, effort = n+1, effort-1
		}
		if n == len(wanted) {
			return fmt.Sprintf("; it is there with other white space, from line %d: %s", i+1, quoteText(strings.Join(lines[i:i+n], "\n")))
		}
	}
	if first > 0 {
		return fmt.Sprintf("; its first line is, at line %d, but what follows is different: %s",
			first, quoteText(strings.Join(lines[first-1:min(len(lines), first+2)], "\n")))
	}
	return ": read the file and copy the text from there"
}
