package openai

import "github.com/tidwall/gjson"

// An error may stand inside of an answer whose status is 200: a gateway passes on what the service behind it said, or
// the service had begun to answer. These are the forms in which it comes:
//
//	{"error":{"code":429,"message":"…"}}    {"error":"…"}    [{"error":{…}}]
//	{"object":"error","message":"…","code":400}
//	{"choices":[{"error":{"code":502,"message":"…"}}]}

// errorInside returns the text of the error in an answer or a piece of one; nil when there is none.
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

// isError reports whether a member says what is wrong. Services put null there when nothing is.
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
