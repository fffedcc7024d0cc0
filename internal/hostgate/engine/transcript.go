package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// maxTranscript is how much of a transcript one process reads. Calls in the skipped part are unknown.
const maxTranscript = 32 << 20

// syncTranscript tells the session what the user has said, and what tools have answered, since the last process.
func (x *decider) syncTranscript(ctx context.Context, s *guard.Session, l *ledger) error {
	var messages []agent.Message
	if x.event.Prompt != "" {
		messages = append(messages, agent.UserText(x.event.Prompt))
	}
	if x.Host == hostgate.ClaudeCode && x.event.Transcript != "" {
		if x.event.Transcript != l.Transcript {
			l.Transcript, l.Offset, l.Tools = x.event.Transcript, 0, nil
		}
		more, skipped, err := l.readClaude()
		if err != nil {
			return err
		}
		if skipped {
			s.MissCalls()
		}
		messages = append(messages, more...)
	}
	if len(messages) == 0 {
		return nil
	}
	return s.Sync(ctx, messages...)
}

// claudeEntry is a line of a transcript of Claude Code.
type claudeEntry struct {
	Type             string `json:"type"`
	IsSidechain      bool   `json:"isSidechain"`
	IsMeta           bool   `json:"isMeta"`
	IsCompactSummary bool   `json:"isCompactSummary"`
	Message          struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// readClaude returns the messages that the transcript has since the last time. The host is still writing to it: a last line without
// an end is left for the next process, and a file that is not there has no messages.
func (l *ledger) readClaude() (messages []agent.Message, skipped bool, err error) {
	file, err := os.Open(l.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	if info.Size() < l.Offset { // another file
		l.Offset, l.Tools = 0, nil
	}
	if skipped = info.Size()-l.Offset > maxTranscript; skipped {
		l.Offset = info.Size() - maxTranscript
	}
	if _, err := file.Seek(l.Offset, io.SeekStart); err != nil {
		return nil, false, err
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return messages, skipped, nil
		}
		if err != nil {
			return nil, false, err
		}
		l.Offset += int64(len(line))
		if bytes.Contains(line, []byte(`"message"`)) {
			messages = append(messages, l.readEntry(line)...)
		}
	}
}

// readEntry returns a line's messages: the user's text, and answers to calls.
func (l *ledger) readEntry(line []byte) (messages []agent.Message) {
	var e claudeEntry
	if json.Unmarshal(line, &e) != nil || e.Type != "user" && e.Type != "assistant" {
		return nil
	}
	var blocks []claudeBlock
	if text, ok := strictjson.Unquote(string(e.Message.Content)); ok {
		blocks = []claudeBlock{{Type: "text", Text: text}}
	} else if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return nil
	}
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use":
			if l.Tools == nil {
				l.Tools = map[string]string{}
			}
			l.Tools[b.ID] = hostgate.ToolName(hostgate.ClaudeCode, b.Name)
		case b.Type == "tool_result":
			messages = append(messages, l.answerOf(b))
		case b.Type == "text" && e.Type == "user" && !e.IsSidechain && !e.IsMeta && !e.IsCompactSummary && !isGenerated(b.Text):
			messages = append(messages, agent.UserText(b.Text))
		}
	}
	return messages
}

// answerOf returns an answer to a call. Errors are also answers to calls that no hook has seen, because they did not run.
func (l *ledger) answerOf(b claudeBlock) agent.Message {
	tool := l.Tools[b.ToolUseID]
	delete(l.Tools, b.ToolUseID)
	text, ok := strictjson.Unquote(string(b.Content))
	if !ok {
		var parts []claudeBlock
		_ = json.Unmarshal(b.Content, &parts) // images and such have no text
		var all strings.Builder
		for _, part := range parts {
			all.WriteString(part.Text)
		}
		text = all.String()
	}
	if b.IsError || tool == "" {
		return agent.UserText(text).WithSource("foreign:" + tool)
	}
	return guard.Foreign(agent.ToolCall{ID: b.ToolUseID, Name: tool}, text)
}

// isGenerated reports whether a text in the user's role is the host's: the output of a command, or a reminder.
func isGenerated(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "<") }
