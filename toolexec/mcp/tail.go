package mcp

import (
	"strings"
	"sync"
)

// tailBytes is how much of a server's output outside of the protocol is kept.
const tailBytes = 4 << 10

// tail keeps the end of the data written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns the kept text. If it was cut, it starts at a whole line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.kept)
	if len(t.kept) == tailBytes {
		if _, rest, ok := strings.Cut(text, "\n"); ok && rest != "" {
			text = rest
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}
