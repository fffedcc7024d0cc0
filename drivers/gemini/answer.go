package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// finishReason is the service's code for why a reply ended.
type finishReason string

// answer is a reply from the service, or a piece of one. It has only the members that the driver reads.
type answer struct {
	ID             string       `json:"responseId"`
	Model          string       `json:"modelVersion"`
	Candidates     []*candidate `json:"candidates"`
	PromptFeedback *struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *usage `json:"usageMetadata"`
}

type candidate struct {
	Content struct {
		Parts []*replyPart `json:"parts"`
	} `json:"content"`
	FinishReason  finishReason `json:"finishReason"`
	FinishMessage string       `json:"finishMessage"`
}

// replyPart is a part that the service sends. The driver sends parts of type part.
type replyPart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature []byte `json:"thoughtSignature"`
	Inline    *struct {
		MediaType string `json:"mimeType"`
		Data      []byte `json:"data"`
	} `json:"inlineData"`
	File *fileData  `json:"fileData"`
	Call *replyCall `json:"functionCall"`
}

type replyCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args are not decoded. Decoding would lose member order, digits of long numbers, and duplicate names.
	Args json.RawMessage `json:"args"`
	// Partial holds pieces of the arguments. More says that further pieces of the call follow.
	Partial []partialArg `json:"partialArgs"`
	More    bool         `json:"willContinue"`
}

type usage struct {
	Prompt        int64 `json:"promptTokenCount"`
	ToolUsePrompt int64 `json:"toolUsePromptTokenCount"`
	Candidates    int64 `json:"candidatesTokenCount"`
	Thoughts      int64 `json:"thoughtsTokenCount"`
	Cached        int64 `json:"cachedContentTokenCount"`
	PromptDetails []*struct {
		Modality string `json:"modality"`
		Tokens   int64  `json:"tokenCount"`
	} `json:"promptTokensDetails"`
}

// apiError is an error that the service reports.
type apiError struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`
}

func (e *apiError) Error() string { return e.Message }

// errShape is returned for an answer in an undocumented format.
var errShape = errors.New("the answer has another form")

// readAnswer decodes a reply or a piece of one. If the service sent an error instead, readAnswer returns it
// as an *apiError.
func readAnswer(text []byte) (*answer, error) {
	if err := readError(text); err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	for _, c := range a.Candidates {
		if c == nil {
			return nil, errShape
		}
		for _, p := range c.Content.Parts {
			if p == nil || p.Call == nil {
				continue
			}
			if args := bytes.TrimSpace(p.Call.Args); len(args) > 0 && args[0] != '{' && args[0] != '"' && string(args) != "null" {
				return nil, errShape
			}
		}
	}
	return &a, nil
}

// readError returns the error in a text: {"error":{…}}, or a list of such objects, which the service sends when it does
// not send events. Gateways also send plain text as the error or its code. Nil means no error.
func readError(text []byte) error {
	type failed struct {
		Error json.RawMessage `json:"error"`
	}
	var one failed
	if json.Unmarshal(text, &one) != nil {
		var list []failed
		if json.Unmarshal(text, &list) != nil || len(list) == 0 {
			return nil //nolint:nilerr // the caller's decoding reports invalid JSON
		}
		one = list[0]
	}
	switch string(one.Error) {
	case "", "null", "{}", `""`:
		return nil
	}
	var e apiError
	if json.Unmarshal(one.Error, &e) == nil {
		return &e
	}
	var loose struct {
		Message, Status, Code json.RawMessage
	}
	if json.Unmarshal(one.Error, &loose) != nil { //nolint:musttag // of unknown names
		loose.Message = one.Error
	}
	words := func(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }
	if json.Unmarshal(loose.Message, &e.Message) != nil {
		e.Message = words(loose.Message)
	}
	return &apiError{Code: service.ErrorStatus(words(loose.Code)), Message: e.Message, Status: words(loose.Status)}
}

// compact returns a call's arguments without white space, or empty text when there are none. Some endpoints send them
// as text, which stays unchanged.
func (c *replyCall) compact() string {
	var out bytes.Buffer
	if text := ""; json.Unmarshal(c.Args, &text) == nil {
		return text // empty for null
	}
	if json.Compact(&out, c.Args) != nil || out.String() == "null" {
		return ""
	}
	return out.String()
}
