package gemini_test

import (
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// candidate returns a reply with these parts.
func candidate(parts, finish string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"` + finish + `","index":0}],` +
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3},"modelVersion":"gemini-3.8-flash"}`
}

// shapes returns replies in the shapes of other endpoints.
func shapes() map[string]modeltest.Shape {
	list := "[" + candidate(`{"text":"Good "}`, "") + ",\n" + candidate(`{"text":"day!"}`, "STOP") + "]"
	echo := []agent.ToolCall{{Name: "echo", Arguments: `{"n":1}`}}
	text := candidate(`{"functionCall":{"name":"echo","args":"{\"n\":1}"}}`, "STOP")
	calling := candidate(`{"functionCall":{"name":"echo","args":{"n":1}}}`, "FUNCTION_CALL")
	return map[string]modeltest.Shape{
		"the arguments are text": {
			Exchange: modeltest.Exchange{Body: text, Frames: []string{"data: " + text + "\n\n"}}, Calls: echo,
		},
		"a list of pieces":                     {Exchange: modeltest.Exchange{Body: list, Frames: []string{list}}, Text: "Good day!"},
		"the finish reason of another service": {Exchange: modeltest.Exchange{Body: calling, Frames: []string{"data: " + calling + "\n\n"}}, Calls: echo},
		"arguments in pieces": {
			Exchange: modeltest.Exchange{Frames: lo.Map([]string{
				candidate(`{"functionCall":{"name":"echo","willContinue":true}}`, ""),
				candidate(`{"functionCall":{"partialArgs":[{"jsonPath":"$.to[0].name","stringValue":"A<d","willContinue":true}],"willContinue":true}}`, ""),
				candidate(`{"functionCall":{"partialArgs":[{"jsonPath":"$.to[0].name","stringValue":"a\""}],"willContinue":true}}`, ""),
				candidate(`{"functionCall":{"partialArgs":[{"jsonPath":"$.to[1]","nullValue":"NULL_VALUE"},{"jsonPath":"$['a b']","numberValue":1.50},{"jsonPath":"$.ok","boolValue":true}],"willContinue":true}}`, ""),
				candidate(`{"functionCall":{}},{"functionCall":{"name":"look","args":{}}}`, "STOP"),
			}, func(text string, _ int) string { return "data: " + text + "\n\n" })},
			Calls: []agent.ToolCall{{Name: "echo", Arguments: `{"to":[{"name":"A<da\""},null],"a b":1.50,"ok":true}`}, {Name: "look", Arguments: "{}"}},
		},
		"a stream that ends like that of OpenAI": {
			Exchange: modeltest.Exchange{Frames: []string{"data: " + candidate(`{"text":"Good day!"}`, "STOP") + "\n\n", "data: [DONE]\n\n"}}, Text: "Good day!",
		},
	}
}

// unfinished returns replies with calls that must not run.
func unfinished() map[string]modeltest.Exchange {
	out := map[string]modeltest.Exchange{}
	for reason := range strings.FieldsSeq("SAFETY RECITATION PROHIBITED_CONTENT BLOCKLIST SPII MODEL_ARMOR MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL " +
		"OTHER MAX_TOKENS NEVER_HEARD_OF") {
		body := candidate(`{"functionCall":{"id":"a","name":"echo","args":{"n":1}}}`, reason)
		out[reason] = modeltest.Exchange{Body: body, Frames: []string{"data: " + body + "\n\n"}}
	}
	return out
}
