package strictjson

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal encodes v as JSON without white space. Equal values give equal text: map members are sorted by name. A
// json.Number is written digit for digit (an empty one as 0), nil slices and maps as [] and {}; only required escapes
// are used. Text that is not valid UTF-8 is an error.
func Marshal(v any) (string, error) {
	text, err := json.Marshal(v, deterministic)
	if err != nil {
		return "", explainMarshal(err)
	}
	return string(text), nil
}

var deterministic = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error {
		if n == "" {
			n = "0"
		}
		return enc.WriteValue(jsontext.Value(n))
	})),
)

// Compact returns the same JSON value without white space. Order, numbers and escapes stay as they are.
func Compact(text string) (string, error) {
	value := jsontext.Value(text)
	if err := value.Compact(); err != nil {
		return "", explain(err)
	}
	return string(value), nil
}
