package einoguard_test

import (
	"slices"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"

	einoguard "github.com/grapnel-go/grapnel/adapters/eino"
)

// Whatever a handler does to the transcript, the conversion is that of a new converter.
func TestTranscriptThatHandlersChange(t *testing.T) {
	t.Parallel()
	call := schema.ToolCall{ID: "1", Function: schema.FunctionCall{Name: "alias", Arguments: "{}"}}
	messages := []*schema.Message{
		schema.SystemMessage("rules"), schema.UserMessage("hello"),
		schema.AssistantMessage("", []schema.ToolCall{call}), schema.ToolMessage("one", "1"),
	}
	aliases := map[string]string{"alias": "pay"}
	x := einoguard.NewTranscript(aliases, "words")
	same := func(how string) {
		t.Helper()
		assert.Equal(t, einoguard.NewTranscript(aliases, "words").Convert(messages), slices.Clone(x.Convert(messages)), how)
	}
	same("at first")
	messages = append(messages, schema.AssistantMessage("done", nil))
	same("appended")
	messages[1].Content = "hello, and more"
	same("a text is changed in place")
	messages[3] = schema.ToolMessage("two", "1")
	same("a message is replaced")
	messages[1].UserInputMultiContent = []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: "a part"}}
	same("a part is added")
	messages = messages[:2]
	same("cut off")
	messages = slices.Insert(messages, 1, schema.UserMessage("before"))
	same("inserted")
}
