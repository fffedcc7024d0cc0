package claudehooks

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/hostgate"
)

// session is a conversation with its transcript and what handlers in the background said.
type session struct {
	set *Set
	id  string

	mu sync.Mutex
	// hasStarted reports that SessionStart happened, isConversation that an agent.Session began it.
	hasStarted, isConversation bool
	prompt                     string // the prompt's ID
	pending, woken             []string
	written                    map[string]*transcript
	environment                string
}

// sessionOf returns a run's session.
func (s *Set) sessionOf(run agent.Run) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(run.Session)
	if run.Depth > 0 { // a sub-agent has a session of its own
		if root, ok := s.roots[run.Root]; ok {
			id = root
		}
	} else {
		s.roots[run.Root] = id
	}
	x := s.sessions[id]
	if x == nil {
		x = &session{set: s, id: id, written: map[string]*transcript{}}
		s.sessions[id] = x
	}
	return x
}

// forget drops a session and its files.
func (s *Set) forget(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x.id)
	for run, id := range s.roots {
		if id == x.id {
			delete(s.roots, run)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.written {
		_ = os.Remove(t.path)
	}
	if x.environment != "" {
		_ = os.Remove(x.environment)
	}
}

func (x *session) add(texts ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending = append(x.pending, texts...)
}

func (x *session) wake(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.woken = append(x.woken, text)
}

// take returns what handlers in the background have said.
func (x *session) take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	texts := slices.Concat(x.pending, x.woken)
	x.pending, x.woken = nil, nil
	return texts
}

func (x *session) takeWoken() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	texts := x.woken
	x.woken = nil
	return texts
}

// envFile returns the file to which handlers append variables for later shell calls.
func (x *session) envFile() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.environment == "" {
		x.environment = filepath.Join(x.set.dir, fileName(x.id)+".env.sh")
		if f, err := os.OpenFile(x.environment, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_ = f.Close()
		}
	}
	return x.environment
}

// variables returns the file with variables for shell calls, unless it is empty.
func (x *session) variables() (path string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info, err := os.Stat(x.environment)
	return x.environment, err == nil && info.Size() > 0
}

// newPrompt gives the prompt an ID.
func (x *session) newPrompt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.prompt = newUUID()
}

// promptID returns the ID of the prompt in progress; empty before the first.
func (x *session) promptID() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.prompt
}

// fileName returns an ID as a file's name.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, id)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// transcript is a file with a run's messages in Claude Code's form, one entry a line.
type transcript struct {
	path   string
	count  int    // messages written
	parent string // the last entry's ID
}

// record appends the state's new messages to the transcript of its run, and returns the path.
func (x *session) record(s agent.State) string {
	run := s.Run()
	key := ""
	if run.Depth > 0 {
		key = string(run.ID)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.transcript(key)
	if s.MessageCount() <= t.count {
		return t.path
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return t.path // scripts see that it is missing
	}
	defer f.Close()
	for i, m := range s.MessagesFrom(t.count) {
		entry := x.entry(m, i, run)
		if entry == nil {
			continue
		}
		entry["parentUuid"] = nil
		if t.parent != "" {
			entry["parentUuid"] = t.parent
		}
		id := newUUID()
		entry["uuid"], t.parent = id, id
		if line, err := json.Marshal(entry); err == nil {
			_, _ = f.Write(append(line, '\n'))
		}
	}
	t.count = s.MessageCount()
	return t.path
}

// transcript returns the session's transcript, or a sub-agent's.
func (x *session) transcript(run string) *transcript {
	t := x.written[run]
	if t == nil {
		name := fileName(x.id)
		if run != "" {
			name += "-agent-" + fileName(run)
		}
		t = &transcript{path: filepath.Join(x.set.dir, name+".jsonl")}
		x.written[run] = t
	}
	return t
}

// transcriptOf returns the path of a sub-agent's transcript.
func (x *session) transcriptOf(run agent.RunID) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.transcript(string(run)).path
}

// entry returns a message as an entry; nil for messages that Claude Code does not record.
func (x *session) entry(m agent.Message, i int, run agent.Run) map[string]any {
	e := map[string]any{
		"sessionId": x.id, "cwd": x.set.options.Dir, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "isSidechain": run.Depth > 0,
		"userType": "external", "version": "2.1.332",
	}
	if run.Depth > 0 {
		e["agentId"] = string(run.ID)
	}
	switch m.Role() {
	case agent.RoleUser:
		e["type"], e["message"] = "user", map[string]any{"role": "user", "content": m.Text()}
		if m.Source() != "" {
			e["isMeta"] = true
		}
	case agent.RoleAssistant:
		content := []any{}
		if m.Text() != "" {
			content = append(content, map[string]any{"type": "text", "text": m.Text()})
		}
		for _, call := range m.Calls() {
			c, err := hostgate.ToClaude(call.Name, call.Arguments, x.set.options.Dir)
			input := c.Input
			if err != nil {
				input = json.RawMessage("{}")
			}
			content = append(content, map[string]any{"type": "tool_use", "id": call.ID, "name": c.Tool, "input": input})
		}
		e["type"], e["message"] = "assistant", map[string]any{
			"id": fmt.Sprintf("msg_%s_%d", fileName(string(run.ID)), i), "type": "message", "role": "assistant", "content": content,
		}
	case agent.RoleTool:
		e["type"], e["message"] = "user", map[string]any{"role": "user", "content": []any{map[string]any{
			"type": "tool_result", "tool_use_id": m.CallID(), "content": m.Text(), "is_error": m.IsError(),
		}}}
	default:
		return nil
	}
	return e
}
