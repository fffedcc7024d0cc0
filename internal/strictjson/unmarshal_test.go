package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type whole int32

type target struct {
	Small   int8           `json:"small"`
	Count   uint           `json:"count"`
	Named   whole          `json:"named"`
	Share   float32        `json:"share"`
	Limit   *int           `json:"limit"`
	Names   []string       `json:"names"`
	ByID    map[int]string `json:"by_id"`
	Any     any            `json:"any"`
	Exact   json.Number    `json:"exact"`
	Big     *big.Int       `json:"big"`
	Started time.Time      `json:"started"`
}

func TestUnmarshalTakesWholeNumbersHoweverWritten(t *testing.T) {
	for text, want := range map[string]int8{
		"10": 10, "10.0": 10, "1e1": 10, "1.2E+1": 12, "100e-1": 10, "0.1e2": 10, "-0.0": 0, "-1.0e0": -1,
		"0e999999999999999999999": 0, "-128.000": -128, "0.00127e5": 127,
	} {
		var in target
		require.NoError(t, Unmarshal(`{"small":`+text+`}`, &in), text)
		assert.Equal(t, want, in.Small, text)
	}
}

func TestUnmarshalKeepsDigits(t *testing.T) {
	const digits = "123456789012345678901234567890"
	var in target
	require.NoError(t, Unmarshal(`{"any":{"n":[`+digits+`,1.50]},"exact":`+digits+`,"big":`+digits+`}`, &in))
	want := map[string]any{"n": []any{json.Number(digits), json.Number("1.50")}}
	assert.Equal(t, want, in.Any)
	assert.Equal(t, json.Number(digits), in.Exact)
	assert.Equal(t, digits, in.Big.String())

	var all any
	require.NoError(t, Unmarshal([]byte(`[9007199254740993,true,"x",null]`), &all))
	assert.Equal(t, []any{json.Number("9007199254740993"), true, "x", nil}, all)
}

func TestUnmarshalRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"small":1.5}`:           "at /small: expected integer (int8), got 1.5",
		`{"small":300}`:           "at /small: 300 is out of range for integer (int8)",
		`{"small":1e999999999}`:   "at /small: 1e999999999 is out of range for integer (int8)",
		`{"small":1e-999999999}`:  "at /small: expected integer (int8), got 1e-999999999",
		`{"small":"7"}`:           "at /small: expected integer (int8), got string",
		`{"named":3000000000}`:    "at /named: 3000000000 is out of range for integer (int32)",
		`{"count":-1}`:            "at /count: -1 is out of range for integer (uint)",
		`{"share":1e39}`:          "at /share: 1e39 is out of range for number (float32)",
		`{"share":true}`:          "at /share: expected number (float32), got boolean",
		`{"names":{"a":1}}`:       "at /names: expected array, got object",
		`{"names":["a",1]}`:       "at /names/1: expected string, got number",
		`{"by_id":{"x":"y"}}`:     `at /by_id/x: expected integer (int), got "x"`,
		`{"small":1,"small":2}`:   `at /small: member "small" is given twice`,
		`{"any":{"a":1,"a":2}}`:   `at /any/a: member "a" is given twice`,
		"{\"names\":[\"\xff\"]}":  "invalid UTF-8",
		`{"started":"yesterday"}`: "at /started: ",
		`[]`:                      "expected object, got array",
		``:                        "the text is empty",
		`{"small":`:               "at /small: the text ends after 9 bytes",
		`{"small":1} 2`:           "not valid JSON",
	} {
		err := Unmarshal(text, &target{})
		require.Error(t, err, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestUnmarshalNamesAreCaseSensitive(t *testing.T) {
	var in target
	require.NoError(t, Unmarshal(`{"SMALL":1,"small":2,"extra":3}`, &in))
	assert.Equal(t, int8(2), in.Small)
	err := UnmarshalStrict(`{"small":2,"SMALL":1}`, &in)
	assert.EqualError(t, err, `at /SMALL: member "SMALL" is not known`)
	assert.ErrorIs(t, err, ErrUnknownMember)
	assert.NoError(t, UnmarshalStrict(`{"small":2,"any":{"extra":1}}`, &in))
}

type picky struct{}

var errPicky = errors.New("no value pleases me")

func (*picky) UnmarshalJSON([]byte) error { return errPicky }

func TestUnmarshalKeepsTheCause(t *testing.T) {
	var in struct{ P picky }
	err := Unmarshal(`{"P":1}`, &in)
	require.ErrorIs(t, err, errPicky)
	assert.EqualError(t, err, "at /P: no value pleases me")
}

// inner decodes itself with this package, like types in other packages; named adds a message to the error.
type inner struct{ Size int }

func (in *inner) UnmarshalJSON(data []byte) error {
	var form struct {
		Size int    `json:"size"`
		Next *inner `json:"next"`
	}
	if err := UnmarshalStrict(data, &form); err != nil {
		return err
	}
	in.Size = form.Size
	return nil
}

type named struct{ inner }

func (in *named) UnmarshalJSON(data []byte) error {
	if err := in.inner.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("reading a named one: %w", err)
	}
	return nil
}

// An error's place includes the whole path, through all types that decode themselves.
func TestUnmarshalSaysTheWholePlace(t *testing.T) {
	for text, want := range map[string]string{
		`{"list": [{"size": 1}, {"size": "2"}]}`:       "at /list/1/size: expected integer (int), got string",
		`{"list": [{"size": 1.5}]}`:                    "at /list/0/size: expected integer (int), got 1.5",
		`{"list": [{"next": {"next": {"size": []}}}]}`: "at /list/0/next/next/size: expected integer (int), got array",
		`{"list": [{"next": {"a/b": 1}}]}`:             `at /list/0/next/a~1b: member "a/b" is not known`,
		`{"list": [7]}`:                                "at /list/0: expected object, got number",
		`{"named": {"size": "2"}}`:                     "at /named: reading a named one: at /size: expected integer (int), got string",
		`{"list": [{"size": 1, "size": 2}]}`:           `at /list/0/size: member "size" is given twice`,
	} {
		var in struct {
			List  []inner `json:"list"`
			Named named   `json:"named"`
		}
		assert.EqualError(t, Unmarshal(text, &in), want, text)
	}
	var in struct{ A inner }
	assert.ErrorIs(t, Unmarshal(`{"A": {"b": 1}}`, &in), ErrUnknownMember)
}

func TestWholeNumberIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		exact, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		got, err := wholeNumber(text)
		switch {
		case err == nil:
			read, ok := new(big.Rat).SetString(got)
			require.True(t, ok, got)
			assert.Zero(t, exact.Cmp(read), "%s became %s", text, got)
		case errors.Is(err, strconv.ErrRange):
			assert.True(t, exact.IsInt())
			assert.Greater(t, len(exact.Num().Text(10)), 20)
		default:
			assert.False(t, exact.IsInt(), "%s is whole", text)
		}
	})
}

func TestMarshalIsDeterministic(t *testing.T) {
	value := map[string]any{
		"b": json.Number("123456789012345678901234567890"), "a": []string(nil), "c": map[string]int{"z": 1, "y": 2},
		"d": "<&>", "e": json.Number(""), "f": json.RawMessage(`{ "k": 1.0 }`),
	}
	const want = `{"a":[],"b":123456789012345678901234567890,"c":{"y":2,"z":1},"d":"<&>","e":0,"f":{"k":1.0}}`
	for range 20 {
		got, err := Marshal(value)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestMarshalSaysWhatCannotBeWritten(t *testing.T) {
	_, err := Marshal(map[string]any{"f": func() {}})
	assert.EqualError(t, err, "at /f: a func() cannot be written as JSON")
	_, err = Marshal("\xff")
	assert.ErrorContains(t, err, "invalid UTF-8")
	_, err = Marshal(json.Number("seven"))
	assert.ErrorContains(t, err, "a json.Number cannot be written as JSON")
}

func ExampleUnmarshal() {
	var in struct {
		Amount int `json:"amount"`
		Memo   any `json:"memo"`
	}
	err := Unmarshal(`{"amount": 10.0, "memo": {"id": 9007199254740993}}`, &in)
	fmt.Println(in.Amount, in.Memo, err)
	fmt.Println(Unmarshal(`{"amount": 10.5}`, &in))
	// Output:
	// 10 map[id:9007199254740993] <nil>
	// at /amount: expected integer (int), got 10.5
}
