package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// events reads a stream of server-sent events, one at a time.
type events struct{ from *bufio.Reader }

// readEvent returns the next event's data. other is the text of an event without data, because some errors arrive as
// plain JSON instead of an event. The error is io.EOF at the end of the stream. If the stream breaks off, the error is
// the cause.
func (e *events) readEvent() (data, other []byte, err error) {
	for {
		line, err := e.from.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		field, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch string(field) {
		case "data":
			data = append(append(data, ' '), bytes.TrimSpace(value)...)
		case "", "event", "id", "retry":
		default:
			other = append(append(other, ' '), bytes.TrimRight(line, "\r\n")...)
		}
		if len(bytes.TrimRight(line, "\r\n")) > 0 && err == nil {
			continue
		}
		switch data = bytes.TrimSpace(data); {
		case string(data) == "[DONE]": // some endpoints end a stream like OpenAI
			data = nil
		case len(data) > 0:
			return data, nil, nil
		case len(other) > 0:
			return nil, bytes.TrimSpace(other), nil
		}
		if err != nil {
			return nil, nil, io.EOF
		}
	}
}
