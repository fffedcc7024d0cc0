package agent_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func hidePin(text string) string { return strings.ReplaceAll(text, "4711", "[pin]") }

// filled sets every text of a struct, so that a field that is added later is not forgotten.
func filled[T any]() T {
	var v T
	x := reflect.ValueOf(&v).Elem()
	for _, f := range x.Fields() {
		if f.Kind() == reflect.String {
			f.SetString("the pin is 4711")
		}
	}
	return v
}

func TestMapTextReachesEveryField(t *testing.T) {
	signal := filled[agent.Signal]()
	signal.Details = map[string]any{"4711": []string{"4711"}}
	answered := agent.NewResult(&agent.Prepared{Call: &agent.ToolCall{Name: "4711", Arguments: "4711"}, Original: &agent.ToolCall{ID: "4711"}})
	answered.Content, answered.Reason, answered.DecidedBy = agent.TextContent("4711"), "4711", "4711"
	answered.Stop, answered.Effects = &agent.Signal{Message: "4711"}, agent.EffectsOf(agent.AddContext("4711"))
	for name, v := range map[string]any{
		"part":   agent.ContentOf(filled[agent.Part](), agent.Text("4711"), agent.Reasoning("4711", "4711")).MapText(hidePin),
		"call":   agent.Assistant("4711", filled[agent.ToolCall]()).MapText(hidePin),
		"signal": signal.MapText(hidePin),
		"answer": agent.ToolAnswer(answered).MapText(hidePin),
		"effects": agent.EffectsOf(
			agent.AddContext("4711"), agent.AddMessage(agent.UserText("4711").WithSource("4711")), agent.SessionKey[string]("4711").Set("4711"),
			agent.RunKey[map[string][]string]("k").Set(map[string][]string{"4711": {"4711"}}),
		).From("by 4711").MapText(hidePin),
	} {
		assert.NotContains(t, dump(v), "4711", name)
	}
}

// dump returns a text with all fields of a value.
func dump(v any) string {
	var b strings.Builder
	var walk func(x reflect.Value)
	walk = func(x reflect.Value) {
		switch x.Kind() {
		case reflect.String:
			b.WriteString(x.String() + "\n")
		case reflect.Pointer, reflect.Interface:
			if !x.IsNil() {
				walk(x.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range x.Len() {
				walk(x.Index(i))
			}
		case reflect.Map:
			for k, e := range x.Seq2() {
				walk(k)
				walk(e)
			}
		case reflect.Struct:
			for i := range x.NumField() {
				if x.Type().Field(i).Name != "wire" {
					walk(x.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(v))
	return b.String()
}

// MapText does not change statuses, and reasons of this module.
func TestMapTextLeavesCodes(t *testing.T) {
	gone := func(string) string { return "gone" }
	m := agent.ToolAnswer(&agent.ToolResult{Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied, Content: agent.TextContent("no")}).MapText(gone)
	assert.Equal(t, agent.ReasonDenied, m.Reason())
	assert.Equal(t, agent.StopCostLimit, agent.Signal{Reason: agent.StopCostLimit}.MapText(gone).Reason)
	assert.Equal(t, agent.StopByHook, agent.Signal{Reason: agent.StopByHook}.MapText(gone).Reason)
}

// Metadata that f does not change keeps its type; metadata that f changes can still be read.
func TestMapTextOfMetadata(t *testing.T) {
	type card struct {
		Name string         `json:"name"`
		Pins map[string]int `json:"pins"`
	}
	key := agent.SessionKey[card]("card")
	s := agent.NewState().Apply(agent.EffectsOf(key.Set(card{"4711", map[string]int{"a": 1}})).MapText(hidePin))
	got, ok := key.From(s)
	require.True(t, ok)
	assert.Equal(t, card{"[pin]", map[string]int{"a": 1}}, got)

	text := agent.SessionKey[string]("text")
	assert.Equal(t, "[pin]", text.Or(agent.NewState().Apply(agent.EffectsOf(text.Set("4711")).MapText(hidePin)), ""))
	number := agent.SessionKey[int]("number")
	assert.Equal(t, 42, number.Or(agent.NewState().Apply(agent.EffectsOf(number.Set(42)).MapText(hidePin)), 0))
	s = agent.NewState().Apply(agent.EffectsOf(number.Set(4711)).MapText(hidePin))
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"number":"[pin]"`, "it is no number any more")
	assert.Zero(t, agent.EffectsOf(agent.SessionKey[any]("func").Set(func() {})).MapText(hidePin).Len(), "JSON cannot hold it")
}

// Adjacent texts are mapped as one text.
func TestMapTextOfPartsThatAreOneText(t *testing.T) {
	c := agent.ContentOf(agent.Text("the pin is 47"), agent.Image("image/png", []byte("\x89PNG 4711")), agent.Text("11.")).MapText(hidePin)
	assert.Equal(t, "the pin is [pin].", c.Text())
	assert.Equal(t, 2, c.Len())
	same := agent.ContentOf(agent.Text("a"), agent.Text("b"))
	assert.True(t, same.Equal(same.MapText(hidePin)))
}
