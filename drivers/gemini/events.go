package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// events is a stream of server-sent events, handed on one at a time and in the
// plain form that the SDK reads: one line of data, one empty line. The SDK reads on
// only when it has yielded what it has, so the event handed on last is the one it
// yields.
type events struct {
	x    *exchange
	from *bufio.Reader
	rest []byte // of the event that is being handed on
	io.Closer
}

func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 && !e.next() {
		return 0, io.EOF // also when it broke off: the exchange knows
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next reads an event; false means that there is none.
func (e *events) next() bool {
	var data, other []byte
	for {
		line, err := e.from.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			e.x.cut = err
			return false
		}
		field, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch string(field) {
		case "data":
			data = append(append(data, ' '), bytes.TrimSpace(value)...)
		case "", "event", "id", "retry":
		default: // an error may come without a field, as it would outside of a stream
			other = append(append(other, ' '), bytes.TrimRight(line, "\r\n")...)
		}
		if len(bytes.TrimRight(line, "\r\n")) > 0 && err == nil {
			continue
		}
		switch data = bytes.TrimSpace(data); {
		case string(data) == "[DONE]": // some endpoints end as OpenAI's does
			data = nil
		case len(data) > 0:
			e.x.text = data
			e.rest = append(append([]byte("data:"), data...), "\n\n"...)
			return true
		case len(other) > 0:
			e.x.text = nil
			e.rest = append(bytes.TrimSpace(other), "\n\n"...)
			return true
		}
		if err != nil {
			return false
		}
	}
}
