package mock

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// line is an answered call in a recording.
type line struct {
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Occurrence int             `json:"occurrence"`
	Text       *string         `json:"text,omitzero"`
	Content    []agent.Part    `json:"content,omitzero"`
	Failed     bool            `json:"failed,omitzero"`
	DurationMS float64         `json:"duration_ms,omitzero"`
}

// key identifies a call.
type key struct{ tool, arguments string }

// keyOf returns the key for a call. It returns an error if the arguments are not an object.
func keyOf(tool, arguments string) (key, error) {
	if arguments == "" {
		arguments = "{}"
	}
	canonical, err := strictjson.Canonical(arguments)
	return key{tool, canonical}, err
}

// Recording holds tool results from one session. It is immutable and safe for concurrent use.
type Recording struct {
	name    string
	answers map[key][]recorded // indexed by occurrence minus one
	lines   []entry            // in order
}

type recorded struct {
	reply reply
	entry int // the index in lines
}

type entry struct {
	key        key
	occurrence int
	line       int
}

// Open reads the recording in a file.
func Open(path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording of tools: %w", err)
	}
	defer file.Close()
	return Read(path, file)
}

// longestLine is the maximum length of a recording's line, in bytes.
const longestLine = 64 << 20

// Read reads a recording. Errors refer to it by name. The error joins all problems, line by line.
func Read(name string, r io.Reader) (*Recording, error) {
	rec := &Recording{name: name, answers: map[key][]recorded{}}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longestLine)
	var wrong []error
	number := 1
	for ; scanner.Scan(); number++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" {
			continue
		}
		if err := rec.add(text, number); err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, number, err))
		}
	}
	if err := scanner.Err(); err != nil {
		wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, number, err))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("read recording of tools: %w", err)
	}
	return rec, nil
}

func (rec *Recording) add(text string, number int) error {
	var l line
	if err := strictjson.UnmarshalStrict(text, &l); err != nil {
		return err
	}
	switch {
	case l.Tool == "":
		return errors.New(`"tool" is missing: set the name of the tool that answered`)
	case l.Arguments == nil:
		return errors.New(`"arguments" is missing: set the object that the tool was called with`)
	case (l.Text == nil) == (l.Content == nil):
		return errors.New(`set either "text" or "content" to the answer of the tool`)
	case l.DurationMS < 0 || l.DurationMS > float64(24*time.Hour/time.Millisecond):
		return errors.New(`"duration_ms" is out of range: expected 0 to one day`)
	}
	k, err := keyOf(l.Tool, string(l.Arguments))
	if err != nil {
		return fmt.Errorf("/arguments: %w", err)
	}
	if next := len(rec.answers[k]) + 1; l.Occurrence != next {
		return fmt.Errorf("occurrence %d of %s with these arguments: expected %d: occurrences count up from one", l.Occurrence, l.Tool, next)
	}
	content := agent.ContentOf(l.Content...)
	if l.Text != nil {
		content = agent.TextContent(*l.Text)
	}
	took := time.Duration(l.DurationMS * float64(time.Millisecond))
	rec.answers[k] = append(rec.answers[k], recorded{reply{content, l.Failed, took}, len(rec.lines)})
	rec.lines = append(rec.lines, entry{k, l.Occurrence, number})
	return nil
}

// Len returns the number of answers.
func (rec *Recording) Len() int { return len(rec.lines) }
