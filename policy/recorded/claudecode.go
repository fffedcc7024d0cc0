package recorded

import (
	"encoding/json"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// claudeCode reads the session files of Claude Code: one entry per line. Entries with the type user or assistant hold
// messages in the Messages API. A model turn is several entries with one message ID and one block each. Sub-agent
// entries are separate runs; they are between their parent's entries (isSidechain) or in a separate file (agentId).
// Entries that the program generated (isMeta, summaries, snapshots, its own errors) are not messages.
type claudeCode struct {
	file
	session string
	open    []*claudeRun
	of      map[string]*claudeRun // sidechains by the UUID of their entries
}

type claudeRun struct {
	run   *Run
	key   string // empty for the main run
	turn  string // the current message's ID
	index int    // the current message's index in the run
}

type claudeEntry struct {
	Type              string          `json:"type"`
	UUID              string          `json:"uuid"`
	ParentUUID        *string         `json:"parentUuid"`
	SessionID         string          `json:"sessionId"`
	AgentID           string          `json:"agentId"`
	IsSidechain       bool            `json:"isSidechain"`
	IsMeta            bool            `json:"isMeta"`
	IsCompactSummary  bool            `json:"isCompactSummary"`
	IsAPIErrorMessage bool            `json:"isApiErrorMessage"`
	Message           json.RawMessage `json:"message"`
}

func newClaudeCode(of file) *claudeCode {
	return &claudeCode{file: of, of: map[string]*claudeRun{}}
}

func (f *claudeCode) add(v value) ([]*Run, error) {
	if v.last {
		return nil, nil
	}
	var e claudeEntry
	if err := strictjson.Unmarshal(v.text, &e); err != nil {
		return nil, err
	}
	if e.Type != "user" && e.Type != "assistant" || e.Message == nil {
		return nil, nil
	}
	var done []*Run
	if e.SessionID != f.session && e.SessionID != "" {
		done, _ = f.end()
		f.session = e.SessionID
	}
	r := f.runOf(v.line, e)
	if e.IsMeta || e.IsCompactSummary || e.IsAPIErrorMessage {
		return done, nil
	}
	var m blockMessage
	if err := strictjson.Unmarshal(e.Message, &m); err != nil {
		return done, err
	}
	if m.Role == "" {
		m.Role = e.Type
	}
	list, err := m.messages()
	if err != nil {
		return done, err
	}
	r.take(m, list)
	return done, nil
}

// runOf returns an entry's run.
func (f *claudeCode) runOf(line int, e claudeEntry) *claudeRun {
	key, parent := e.AgentID, ""
	if e.ParentUUID != nil {
		parent = *e.ParentUUID
	}
	var r *claudeRun
	switch {
	case key != "":
	case e.IsSidechain && f.of[parent] != nil:
		r = f.of[parent]
	case e.IsSidechain:
		key = e.UUID // a sidechain begins
	}
	for _, open := range f.open {
		if r == nil && open.key == key {
			r = open
		}
	}
	if r == nil {
		id := e.SessionID
		if key != "" {
			id += "/" + key
		}
		r = &claudeRun{run: f.run(line, replay.Record{ID: id, Source: "claude-code", Messages: []replay.Message{}}), key: key}
		r.run.Agent = "claude-code"
		r.run.Lacks = "the system prompt and the tools"
		f.open = append(f.open, r)
	}
	if e.IsSidechain && e.UUID != "" {
		f.of[e.UUID] = r
	}
	return r
}

// take adds a message's content. It merges blocks of the current turn into that turn.
func (r *claudeRun) take(m blockMessage, list []replay.Message) {
	r.run.Model = firstOf(r.run.Model, m.Model)
	for _, said := range list {
		if said.Role != replay.RoleAssistant {
			if said.Role == replay.RoleUser {
				r.turn = ""
			}
			r.run.Messages = append(r.run.Messages, said)
			continue
		}
		if m.ID == "" || m.ID != r.turn {
			r.turn, r.index = m.ID, len(r.run.Messages)
			r.run.Messages = append(r.run.Messages, said)
			continue
		}
		turn := &r.run.Messages[r.index]
		turn.ToolCalls = append(turn.ToolCalls, said.ToolCalls...)
		if said.Content.Said {
			text := said.Content.Text
			if turn.Content.Said {
				text = turn.Content.Text + "\n" + text
			}
			turn.Content = replay.Text(text)
		}
	}
}

func (f *claudeCode) end() ([]*Run, []error) {
	var done []*Run
	for _, r := range f.open {
		if len(r.run.Messages) > 0 {
			done = append(done, r.run)
		}
	}
	f.open, f.of = nil, map[string]*claudeRun{}
	return done, nil
}
