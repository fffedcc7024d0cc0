package modeltest

import (
	"bufio"
	"io"
	"log"
	"strings"
	"sync"
)

// logged records a process's output. It is safe for concurrent use.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logger returns a logger that writes to l.
func (l *logged) logger() *log.Logger { return log.New(l, "endpoint: ", 0) }

// follow reads lines to the end and sends the server's address to ready.
func (l *logged) follow(r io.Reader, ready chan<- string) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		_, _ = io.WriteString(l, line)
		if _, address, ok := strings.Cut(line, "server listening on "); ok {
			ready <- strings.TrimSpace(address)
		}
		if err != nil {
			_, _ = io.WriteString(l, err.Error()+"\n")
			return
		}
	}
}
