package openai_test

import (
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// deltas returns a stream whose choice has these deltas, and then a finish reason.
func deltas(finish string, list ...string) modeltest.Exchange {
	frames := lo.Map(list, func(delta string, _ int) string {
		return `data: {"id":"r","model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
	})
	return modeltest.Exchange{Frames: append(frames,
		`data: {"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`+"\n\ndata: [DONE]\n\n")}
}

// inPieces returns a stream with one element of tool_calls in each delta. An element is written as in
// 0 id name arguments, with - for a member that is missing and the arguments in the rest of the line.
func inPieces(list ...string) modeltest.Exchange {
	return deltas("tool_calls", lo.Map(list, func(line string, _ int) string { return `{"tool_calls":[` + element(line) + `]}` })...)
}

func element(line string) string {
	fields := strings.SplitN(line, " ", 4)
	var members, function []string
	if fields[0] != "-" {
		members = append(members, `"index":`+fields[0])
	}
	if fields[1] != "-" {
		members = append(members, `"id":"`+fields[1]+`"`)
	}
	if fields[2] != "-" {
		function = append(function, `"name":"`+fields[2]+`"`)
	}
	if len(fields) > 3 && fields[3] != "-" {
		function = append(function, `"arguments":"`+strings.ReplaceAll(fields[3], `"`, `\"`)+`"`)
	}
	return `{` + strings.Join(append(members, `"function":{`+strings.Join(function, ",")+`}`), ",") + `}`
}

func call(id, name, arguments string) agent.ToolCall {
	return agent.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// chatCalls are calls in the shapes of services and gateways.
var chatCalls = map[string]struct {
	stream modeltest.Exchange
	calls  []agent.ToolCall
}{
	"OpenAI": {inPieces(`0 a echo -`, `0 - - {"n"`, `0 - - :1}`, `1 b look -`, `1 - - {}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "look", "{}")}},
	"interleaved": {inPieces(`0 a echo -`, `1 b echo -`, `0 - - {"n":1}`, `1 - - {"n":2}`),
		[]agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`)}},
	"vLLM, id and name in each piece":      {inPieces(`0 a echo {"n"`, `0 a echo :`, `0 a echo 1}`, `0 a echo -`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"an empty id in later pieces":          {deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":""}}]}`, `{"tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":"{\"n\":1}"}}]}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"Ollama, whole calls with the index 0": {inPieces(`0 a echo {"n":1}`, `0 b echo {"n":2}`, `0 c look {}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`), call("c", "look", "{}")}},
	"pieces of calls with the index 0": {inPieces(`0 a echo -`, `0 - - {"n":1}`, `0 b echo -`, `0 - - {"n":2}`),
		[]agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`)}},
	"the id changes after the name":          {inPieces(`0 a echo -`, `0 b - {"n"`, `0 b - :1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"the id changes with each piece":         {inPieces(`0 a echo -`, `0 b - {"n"`, `0 c - :1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"id and index change with each piece":    {inPieces(`0 a echo -`, `1 b - {"n"`, `2 c - :`, `3 d - 1}`, `4 e look -`, `5 f - {}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("e", "look", "{}")}},
	"the id changes, the name is repeated":   {inPieces(`0 a echo -`, `0 b echo {"n"`, `0 c echo :1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"no index":                               {inPieces(`- a echo {"n"`, `- - - :1}`, `- b echo {"n":2}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`)}},
	"no index, the id in each piece":         {inPieces(`- a echo {"n"`, `- b echo {"m"`, `- a - :1}`, `- b - :2}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"m":2}`)}},
	"no id":                                  {inPieces(`0 - echo -`, `0 - - {"n":1}`, `1 - echo -`, `1 - - {"n":2}`), []agent.ToolCall{call("", "echo", `{"n":1}`), call("", "echo", `{"n":2}`)}},
	"neither index nor id":                   {inPieces(`- - echo -`, `- - - {"n":1}`, `- - echo -`, `- - - {"n":2}`), []agent.ToolCall{call("", "echo", `{"n":1}`), call("", "echo", `{"n":2}`)}},
	"neither, whole calls":                   {inPieces(`- - echo {"n":1}`, `- - echo {"n":1}`, `- - look {}`), []agent.ToolCall{call("", "echo", `{"n":1}`), call("", "echo", `{"n":1}`), call("", "look", "{}")}},
	"neither, the name in each piece":        {inPieces(`- - echo -`, `- - echo {"n"`, `- - echo :1}`), []agent.ToolCall{call("", "echo", `{"n":1}`)}},
	"neither, other tools without arguments": {inPieces(`- - echo -`, `- - look -`), []agent.ToolCall{call("", "echo", ""), call("", "look", "")}},
	"no index, several calls in a delta": {deltas("tool_calls", `{"tool_calls":[`+element(`- a echo -`)+","+element(`- b look -`)+`]}`, `{"tool_calls":[`+element(`- - - {"n":1}`)+","+element(`- - - {"n":2}`)+`]}`),
		[]agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "look", `{"n":2}`)}},
	"a placeholder before the arguments":      {inPieces(`0 a echo {}`, `0 - - {"n"`, `0 - - :1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"a placeholder, then another id":          {inPieces(`0 a echo {}`, `0 b - {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"a placeholder that is all":               {inPieces(`0 a echo {}`, `1 b look {}`), []agent.ToolCall{call("a", "echo", "{}"), call("b", "look", "{}")}},
	"a whole call at two indices":             {inPieces(`0 a echo {"n":1}`, `1 a echo {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"a whole call after its pieces":           {inPieces(`0 a echo -`, `0 - - {"n"`, `0 - - :1}`, `0 a echo {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"all arguments after their pieces":        {inPieces(`0 a echo {"n"`, `0 - - :1}`, `0 - - {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"each piece repeats all arguments":        {inPieces(`0 a echo {`, `0 - - {"n"`, `0 - - {"n":`, `0 - - {"n":1}`, `0 - - {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"each piece repeats the call":             {inPieces(`0 a echo {"n"`, `0 a echo {"n":1`, `0 a echo {"n":1}`, `1 b look {"m"`, `1 b look {"m":2}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "look", `{"m":2}`)}},
	"repeated arguments without an index":     {inPieces(`- a echo {"n"`, `- - - {"n":1}`, `- b echo {"n"`, `- - - {"n":2}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`)}},
	"a piece that begins like the arguments":  {inPieces(`0 a echo {"n":`, `0 - - {"n":1}`, `0 - - }`), []agent.ToolCall{call("a", "echo", `{"n":{"n":1}}`)}},
	"a last piece like the arguments":         {inPieces(`0 a echo {"n":`, `0 - - {"n":1}}`), []agent.ToolCall{call("a", "echo", `{"n":{"n":1}}`)}},
	"one piece repeats the arguments":         {inPieces(`0 a echo {"n":`, `0 - - {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"one id for several calls":                {inPieces(`0 a echo {"n":1}`, `1 a echo {"n":2}`, `2 a look {}`), []agent.ToolCall{call("a", "echo", `{"n":1}`), call("a", "echo", `{"n":2}`), call("a", "look", "{}")}},
	"the arguments come before the name":      {inPieces(`0 a - {"n"`, `0 - echo :1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"the id comes before the name":            {inPieces(`0 a - -`, `0 - echo -`, `0 - - {"n":1}`), []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
	"a name in pieces":                        {inPieces(`0 a look_ -`, `0 - up_a -`, `0 - ll {"n":1}`), []agent.ToolCall{call("a", "look_up_all", `{"n":1}`)}},
	"a name in pieces, with the arguments":    {inPieces(`0 a loo {"n"`, `0 - k :1}`), []agent.ToolCall{call("a", "look", `{"n":1}`)}},
	"a name that a longer one begins with":    {inPieces(`0 a look -`, `0 - _up_all {"n":1}`), []agent.ToolCall{call("a", "look_up_all", `{"n":1}`)}},
	"an index that begins at 1":               {inPieces(`1 a echo -`, `1 - - {}`), []agent.ToolCall{call("a", "echo", "{}")}},
	"an unknown tool":                         {inPieces(`0 a other {"n"`, `0 - - :1}`, `1 b other {}`), []agent.ToolCall{call("a", "other", `{"n":1}`), call("b", "other", "{}")}},
	"two objects as the arguments of one":     {inPieces(`0 a echo {"n":1}`, `0 - - {"n":2}`), []agent.ToolCall{call("a", "echo", `{"n":1}{"n":2}`)}},
	"space after the arguments":               {inPieces(`0 a echo {"n":1}`, `0 a echo  `, `0 - -  `), []agent.ToolCall{call("a", "echo", `{"n":1}  `)}},
	"pieces without anything":                 {inPieces(`0 - - -`, `- - - -`, `0 a echo {}`, `0 - - -`, `3 - - -`), []agent.ToolCall{call("a", "echo", "{}")}},
	"no arguments at all":                     {inPieces(`0 a echo -`), []agent.ToolCall{call("a", "echo", "")}},
	"the arguments are an object":             {deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":{"n": 1.0}}}]}`), []agent.ToolCall{call("a", "echo", `{"n": 1.0}`)}},
	"the arguments are null":                  {deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":null}}]}`, `{"tool_calls":[{"index":0,"function":{"name":null,"arguments":"{}"}}]}`), []agent.ToolCall{call("a", "echo", "{}")}},
	"the arguments are a list":                {deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":[1]}}]}`), []agent.ToolCall{call("a", "echo", `[1]`)}},
	"tool_calls is one call":                  {deltas("tool_calls", `{"tool_calls":{"id":"a","function":{"name":"echo","arguments":"{}"}}}`), []agent.ToolCall{call("a", "echo", "{}")}},
	"the index is text":                       {deltas("stop", `{"tool_calls":[{"index":"0","id":"a","function":{"name":"echo","arguments":""}}]}`, `{"tool_calls":[{"index":"0","function":{"arguments":"{}"}}]}`), []agent.ToolCall{call("a", "echo", "{}")}},
	"function_call, as before there were ids": {deltas("function_call", `{"function_call":{"name":"echo","arguments":""}}`, `{"function_call":{"arguments":"{\"n\":"}}`, `{"function_call":{"arguments":"1}"}}`), []agent.ToolCall{call("", "echo", `{"n":1}`)}},
	"the message instead of the delta":        {modeltest.Exchange{Frames: []string{`data: {"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` + element(`- a echo {}`) + `]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"}}, []agent.ToolCall{call("a", "echo", "{}")}},
	"no empty lines between events": {modeltest.Exchange{Frames: []string{strings.ReplaceAll(strings.Join(inPieces(`0 a echo -`, `0 - - {"n":1}`).Frames, ""), "\n\n", "\n")}},
		[]agent.ToolCall{call("a", "echo", `{"n":1}`)}},
}

// shapes returns replies in the shapes of services and gateways.
func shapes() map[string]modeltest.Shape {
	out := map[string]modeltest.Shape{}
	for name, c := range chatCalls {
		out[name] = modeltest.Shape{Exchange: c.stream, Calls: c.calls}
	}
	whole := func(message string) string {
		return `{"id":"r","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	}
	for name, message := range map[string]string{
		"content is a list":          `{"content":[{"type":"text","text":"It is "},{"type":"text","text":"four."}]}`,
		"content is a list of texts": `{"content":["It is ","four."]}`,
		"content is a part":          `{"content":{"type":"output_text","text":"It is four."}}`,
		"a part has its text inside": `{"content":[{"type":"text","text":{"value":"It is four."}}]}`,
		"parts of other kinds":       `{"content":[{"type":"text","text":"It is four."},{"type":"reference","reference_ids":[1]},null,{}]}`,
	} {
		out[name] = modeltest.Shape{Exchange: modeltest.Exchange{Body: whole(message), Frames: deltas("stop", message).Frames}, Text: "It is four."}
	}
	for name, message := range map[string]string{
		"thinking in a part":        `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]},{"type":"text","text":"It is four."}]}`,
		"reasoning in a part":       `{"content":[{"type":"reasoning","text":"Let me see."},{"type":"text","text":"It is four."}]}`,
		"reasoning_content":         `{"reasoning_content":"Let me see.","content":"It is four."}`,
		"reasoning under two names": `{"reasoning":"Let me see.","reasoning_content":"Let me see.","content":"It is four."}`,
		"reasoning is a list":       `{"reasoning":[{"type":"text","text":"Let me "},{"type":"text","text":"see."}],"content":"It is four."}`,
		"thinking":                  `{"thinking":"Let me see.","content":"It is four."}`,
	} {
		out[name] = modeltest.Shape{
			Exchange: modeltest.Exchange{Body: whole(message), Frames: deltas("stop", message).Frames}, Text: "It is four.", Reasoning: "Let me see.",
		}
	}
	calling := `{"content":"","tool_calls":[{"id":"a","function":{"name":"echo","arguments":{"n":1}}},{"id":"a","function":{"name":"echo","arguments":{"n":1}}},` +
		`{"function":{"name":"look","arguments":"{}"}},{"function":{"name":"look","arguments":""}}]}`
	out["a whole reply with a call twice"] = modeltest.Shape{
		Exchange: modeltest.Exchange{Body: whole(calling)}, Calls: []agent.ToolCall{call("a", "echo", `{"n":1}`), call("", "look", "{}"), call("", "look", "")},
	}
	return out
}

// unfinished returns replies with calls that must not run.
func unfinished() map[string]modeltest.Exchange {
	out := map[string]modeltest.Exchange{}
	for _, finish := range []string{"content_filter", "refusal", "SAFETY", "error", "network_error", "sensitive", "never heard of", "length", "max_tokens"} {
		x := deltas(finish, `{"content":"I will ","tool_calls":[`+element(`0 a echo {"n":1}`)+`]}`)
		x.Body = `{"choices":[{"message":{"content":"I will ","tool_calls":[` + element(`- a echo {"n":1}`) + `]},"finish_reason":"` + finish + `"}]}`
		out[finish] = x
	}
	x := deltas("tool_calls", `{"refusal":"No.","tool_calls":[`+element(`0 a echo {"n":1}`)+`]}`)
	x.Body = `{"choices":[{"message":{"content":null,"refusal":"No.","tool_calls":[` + element(`- a echo {"n":1}`) + `]},"finish_reason":"tool_calls"}]}`
	out["a refusal in words"] = x
	return out
}

// responsesShapes returns replies of the Responses API in the shapes of other implementations, and replies with a call
// that must not run.
func responsesShapes() (shapes map[string]modeltest.Shape, unfinished map[string]modeltest.Exchange) {
	response := func(status, reason, output string) modeltest.Exchange {
		body := `{"id":"resp_1","status":"` + status + `","incomplete_details":{"reason":"` + reason + `"},"output":[` + output + `]}`
		return modeltest.Exchange{Body: body, Frames: []string{frame(`{"type":"response.` + status + `","response":` + body + `}`)}}
	}
	const item = `{"type":"function_call","id":"fc_1","call_id":"a","name":"echo","arguments":`
	shapes = map[string]modeltest.Shape{
		"the arguments are an object": {Exchange: response("completed", "", item+`{"n":1}}`), Calls: []agent.ToolCall{call("a", "echo", `{"n":1}`)}},
		"the arguments are a list":    {Exchange: response("completed", "", item+`[1]}`), Calls: []agent.ToolCall{call("a", "echo", `[1]`)}},
		"the arguments are null":      {Exchange: response("completed", "", item+`null}`), Calls: []agent.ToolCall{call("a", "echo", "")}},
	}
	const one = `"{\"n\":1}"}`
	shapes["a call twice"] = modeltest.Shape{
		Exchange: response("completed", "", item+one+","+item+one+","+item+`"{}"},`+strings.Replace(item+one, `"a"`, `"b"`, 1)),
		Calls:    []agent.ToolCall{call("a", "echo", `{"n":1}`), call("a", "echo", "{}"), call("b", "echo", `{"n":1}`)},
	}
	added := func(index string) string {
		return frame(`{"type":"response.output_item.added","output_index":`+index+`,"item":`+item+`""}}`) +
			frame(`{"type":"response.function_call_arguments.delta","output_index":`+index+`,"delta":"{\"n\":1}"}`) +
			frame(`{"type":"response.output_item.done","output_index":`+index+`,"item":`+item+one+`}`)
	}
	shapes["a call twice, in pieces"] = modeltest.Shape{
		Exchange: modeltest.Exchange{Frames: []string{added("0"), added("1"), frame(`{"type":"response.completed","response":{"status":"completed","output":[]}}`)}},
		Calls:    []agent.ToolCall{call("a", "echo", `{"n":1}`)},
	}
	began := func(index, id string) string {
		return frame(`{"type":"response.output_item.added","output_index":` + index + `,"item":` + strings.Replace(item, `"a"`, `"`+id+`"`, 1) + `""}}`)
	}
	ended := func(index, arguments string) string {
		return frame(`{"type":"response.function_call_arguments.delta","output_index":`+index+`,"delta":`+strconv.Quote(arguments)+`}`) +
			frame(`{"type":"response.output_item.done","output_index":`+index+`,"item":`+item+strconv.Quote(arguments)+`}}`)
	}
	shapes["a call twice, among open calls"] = modeltest.Shape{
		Exchange: modeltest.Exchange{Frames: []string{
			began("0", "a"), ended("0", "{}"), began("1", "a"), began("2", "a"), began("3", "b"), ended("1", "{}"), ended("2", `{"n":2}`), ended("3", "{}"),
			frame(`{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		}},
		Calls: []agent.ToolCall{call("a", "echo", "{}"), call("b", "echo", "{}"), call("a", "echo", `{"n":2}`)},
	}
	// streamed returns a stream with a call whose arguments come in pieces. Without an end, nothing repeats them whole.
	streamed := func(index, end string, pieces ...string) modeltest.Shape {
		frames := []string{frame(`{"type":"response.output_item.added",` + index + `"item":` + item + `""}}`)}
		for _, piece := range pieces {
			frames = append(frames, frame(`{"type":"response.function_call_arguments.delta",`+index+`"item_id":"fc_1","delta":`+strconv.Quote(piece)+`}`))
		}
		if end != "" {
			frames = append(frames, frame(`{"type":"response.`+end+`,`+index+`"item_id":"fc_1"}`))
		}
		other := `{"type":"response.output_item.added",` + strings.Replace(index, "0", "1", 1) + `"item":` + strings.Replace(item, "fc_1", "fc_2", 1) + `"{}"}}`
		frames = append(frames, frame(strings.Replace(other, `"call_id":"a"`, `"call_id":"b"`, 1)), frame(`{"type":"response.completed","response":{"status":"completed","output":[]}}`))
		return modeltest.Shape{Exchange: modeltest.Exchange{Frames: frames}, Calls: []agent.ToolCall{call("a", "echo", `{"n":1}`), call("b", "echo", "{}")}}
	}
	const first, whole = `"output_index":0,`, `"arguments":"{\"n\":1}"`
	shapes["each piece repeats all arguments"] = streamed(first, "", `{`, `{"n"`, `{"n":`, `{"n":1}`)
	shapes["all arguments after their pieces"] = streamed(first, "", `{"n"`, `:1}`, `{"n":1}`)
	shapes["a placeholder before the arguments"] = streamed(first, "", `{}`, `{"n"`, `:1}`)
	shapes["a placeholder, then all arguments"] = streamed(first, `function_call_arguments.done",`+whole, `{}`)
	shapes["all arguments without pieces"] = streamed(first, `function_call_arguments.done",`+whole)
	shapes["repeated arguments, then all"] = streamed(first, `output_item.done","item":`+item+`"{\"n\":1}"}`, `{"n"`, `{"n":`)
	shapes["no index"] = streamed("", "", `{"n"`, `:1}`)
	shapes["a placeholder, then nothing"] = streamed(first, `function_call_arguments.done","arguments":""`, `{}`)
	shapes["a placeholder, then nothing"].Calls[0].Arguments = "{}"
	unfinished = map[string]modeltest.Exchange{
		"a refusal": response("completed", "", item+`"{}"},{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`),
	}
	for _, reason := range []string{"content_filter", "max_output_tokens", "never heard of"} {
		unfinished[reason] = response("incomplete", reason, item+`"{\"n\":1}"}`)
	}
	return shapes, unfinished
}
