package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// appendMessages appends the messages of s in the format that the service requires. User and assistant turns alternate,
// and in the user's turns the tool results come first.
func (d *Driver) appendMessages(out []byte, s agent.State) ([]byte, error) {
	size, first := 0, 0
	for i, m := range s.Messages() {
		blocks, err := d.messages.Of(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		size += len(blocks) + len(`{"role":"assistant","content":[]},`)
		if first == i && m.Role() == agent.RoleSystem {
			first++ // the head contains it
		}
	}
	t := turns{out: slices.Grow(out, size+len(nothing))}
	for i, m := range s.Messages() {
		if i < first {
			continue
		}
		blocks, err := d.messages.Of(m)
		if err == nil && i == s.MessageCount()-1 && m.Role() == agent.RoleAssistant {
			blocks, err = d.lastBlocks(m, blocks)
		}
		if err != nil {
			return nil, err
		}
		t.add(m.Role(), blocks)
	}
	if !t.began {
		t.add(agent.RoleUser, nothing)
	}
	t.end()
	return t.out, nil
}

// nothing replaces an empty user message. The service requires that a message has content, and that the first message
// is from the user.
const nothing = `{"text":"(empty)","type":"text"}`

// turns joins the content blocks of messages into turns.
type turns struct {
	out   []byte
	began bool     // the first turn has begun
	open  string   // the role of the open turn; empty when no turn is open
	empty bool     // the open turn has no blocks
	late  []string // the user's blocks that follow the tool results
}

func (t *turns) add(role agent.Role, blocks string) {
	if blocks == "" {
		return
	}
	speaker := "user"
	if role == agent.RoleAssistant {
		speaker = "assistant"
	}
	if t.open != speaker {
		if !t.began && speaker == "assistant" {
			t.add(agent.RoleUser, nothing)
		}
		t.end()
		if t.began {
			t.out = append(t.out, ',')
		}
		t.out = append(append(append(t.out, `{"role":"`...), speaker...), `","content":[`...)
		t.began, t.open, t.empty = true, speaker, true
	}
	if role == agent.RoleUser || role == agent.RoleSystem {
		t.late = append(t.late, blocks)
		return
	}
	t.write(blocks)
}

func (t *turns) write(blocks string) {
	if !t.empty {
		t.out = append(t.out, ',')
	}
	t.out = append(t.out, blocks...)
	t.empty = false
}

func (t *turns) end() {
	if t.open == "" {
		return
	}
	for _, blocks := range t.late {
		t.write(blocks)
	}
	t.late, t.open = t.late[:0], ""
	t.out = append(t.out, "]}"...)
}

// blocksOf returns a message's content as the service's content blocks, separated by commas. The result is cached for
// each message.
func (d *Driver) blocksOf(m agent.Message) ([]byte, error) {
	var blocks []sdk.ContentBlockParamUnion
	var err error
	switch m.Role() {
	case agent.RoleTool:
		blocks, err = d.resultBlocks(m)
	case agent.RoleAssistant:
		blocks = assistantBlocks(m)
	case agent.RoleSystem:
		blocks = []sdk.ContentBlockParamUnion{sdk.NewTextBlock("<system>\n" + m.Text() + "\n</system>")}
	case agent.RoleUser:
		blocks, err = d.saidBlocks(m)
	default:
		return nil, fmt.Errorf("the unknown role %q", m.Role())
	}
	if err == nil && len(blocks) == 0 && m.Role() == agent.RoleUser {
		return []byte(nothing), nil
	}
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	raw, err := json.Marshal(blocks)
	return bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte("[")), []byte("]")), err
}

// isBlank reports whether a text is empty or white space. The service refuses such blocks.
func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// saidBlocks returns the content of a user message or a tool's answer, without blank text.
func (d *Driver) saidBlocks(m agent.Message) ([]sdk.ContentBlockParamUnion, error) {
	var blocks []sdk.ContentBlockParamUnion
	for _, p := range m.Content().Parts() {
		block, err := d.partBlock(p)
		if err != nil {
			return nil, err
		}
		if !param.IsOmitted(block) {
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

// resultBlocks returns the answer to a call.
func (d *Driver) resultBlocks(m agent.Message) ([]sdk.ContentBlockParamUnion, error) {
	said, err := d.saidBlocks(m)
	if err != nil {
		return nil, err
	}
	result := &sdk.ToolResultBlockParam{ToolUseID: wireID(m.CallID())}
	for _, b := range said {
		content := sdk.ToolResultBlockParamContentUnion{OfText: b.OfText, OfImage: b.OfImage, OfDocument: b.OfDocument}
		result.Content = append(result.Content, content)
	}
	if m.IsError() {
		result.IsError = param.NewOpt(true)
		if len(result.Content) == 0 { // the service requires a text for errors
			text := &sdk.TextBlockParam{Text: "the tool failed without a message"}
			result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: text})
		}
	}
	return []sdk.ContentBlockParamUnion{{OfToolResult: result}}, nil
}

// lastBlocks returns the blocks for a reply at the end of the messages, which the service continues. The service
// refuses white space at the end of its text.
func (d *Driver) lastBlocks(m agent.Message, blocks string) (string, error) {
	var parts []agent.Part
	for _, p := range m.Content().Parts() {
		parts = append(parts, p)
	}
	last := len(parts) - 1
	if last < 0 || parts[last].Kind != agent.PartText || m.CallCount() > 0 {
		return blocks, nil
	}
	parts[last].Text = strings.TrimRightFunc(parts[last].Text, unicode.IsSpace)
	raw, err := d.blocksOf(agent.AssistantContent(agent.ContentOf(parts...)))
	return string(raw), err
}

// assistantBlocks returns a reply's blocks: parts and calls in their original order, if it is known. An empty reply has
// no blocks. The service refuses a reply that ends in thinking, so such thinking is left out. Replies that were cut end
// in this way.
func assistantBlocks(m agent.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	called, said := 0, 0 // said is the number of blocks up to the last that is not thinking
	callUpTo := func(n int) {
		for ; called < min(n, m.CallCount()); called++ {
			c := m.Call(called)
			blocks = append(blocks, sdk.NewToolUseBlock(wireID(c.ID), service.Arguments(c.Arguments), c.Name))
			said = len(blocks)
		}
	}
	for _, p := range m.Content().Parts() {
		switch {
		case p.Kind == agent.PartText && !isBlank(p.Text):
			blocks = append(blocks, sdk.NewTextBlock(p.Text))
			said = len(blocks)
		case p.Kind == agent.PartReasoning:
			if block, calls, isThinking, ok := keptBlock(p); ok {
				callUpTo(calls)
				if blocks = append(blocks, block); !isThinking {
					said = len(blocks)
				}
			}
		}
	}
	callUpTo(m.CallCount())
	return blocks[:said]
}

// plainID matches call IDs that the service accepts.
var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// wireID returns a call ID in a format that the service accepts. Other services' IDs may contain characters that it
// refuses.
func wireID(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	return "id_" + base64.RawURLEncoding.EncodeToString([]byte(id))
}
