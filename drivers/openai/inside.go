package openai

import "github.com/tidwall/gjson"

// An answer with status 200 may contain an error. A gateway passes on an error from the service behind it, or the
// service fails after it began to answer. Such errors have these formats:
//
//	{"error":{"code":429,"message":"…"}}    {"error":"…"}    [{"error":{…}}]
//	{"object":"error","message":"…","code":400}
//	{"choices":[{"error":{"code":502,"message":"…"}}]}

// errorInside returns the text of an error in an answer or in a piece of one. It returns nil when there is none.
func errorInside(answer gjson.Result) []byte {
	if answer.IsArray() {
		answer = answer.Get("0")
	}
	if isError(answer.Get("error")) || answer.Get("object").String() == "error" {
		return []byte(answer.Raw)
	}
	if choice := answer.Get("choices.0"); isError(choice.Get("error")) {
		return []byte(choice.Raw)
	}
	return nil
}

// isError reports whether a member describes an error. Services send null there when there is no error.
func isError(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		return v.IsObject() && len(v.Map()) > 0 || v.IsArray() && len(v.Array()) > 0
	case gjson.Number, gjson.True:
		return true
	}
	return false
}
