package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

func TestCanonical(t *testing.T) {
	for want, texts := range map[string][]string{
		`{}`:                            {`{}`, ` { } `},
		`{"a":1,"b":[true,null]}`:       {`{"b":[true,null],"a":1}`, `{"a":1.0,"b":[true, null]}`, `{"\u0061":10e-1,"b":[true,null]}`},
		`{"n":-15e-1}`:                  {`{"n":-1.5}`, `{"n":-1.50}`, `{"n":-15e-1}`, `{"n":-0.015e+2}`},
		`{"n":0}`:                       {`{"n":0}`, `{"n":-0.0}`, `{"n":0e7}`},
		`{"n":[{"m":1000}]}`:            {`{"n":[{"m":1e3}]}`, `{"n":[{"m":1000}]}`},
		`{"n":1e400}`:                   {`{"n":1e400}`, `{"n":10E399}`},
		`{"n":12345678901234567891}`:    {`{"n":12345678901234567891}`, `{"n":12345678901234567891.0}`},
		`{"n":123456789012345678912e0}`: {`{"n":123456789012345678912}`},
		`{"s":"é\n/"}`:                  {`{"s":"\u00e9\n\/"}`, "{\"s\":\"é\\u000a/\"}"},
	} {
		for _, text := range texts {
			got, err := strictjson.Canonical(text)
			require.NoError(t, err, text)
			assert.Equal(t, want, got, text)
			again, err := strictjson.Canonical(got)
			require.NoError(t, err)
			assert.Equal(t, want, again)
		}
	}
	for _, text := range []string{"", "[]", `{"a":1,"a":1}`, `{"a":1,"A":1}`, `{"n":1e9999}`, `{`} {
		_, err := strictjson.Canonical(text)
		assert.Error(t, err, text)
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(`{"a":[1.50,{"b":"x"}],"c":-0}`)
	f.Fuzz(func(t *testing.T, text string) {
		once, err := strictjson.Canonical(text)
		if err != nil {
			require.Error(t, strictjson.CheckObject(text))
			return
		}
		twice, err := strictjson.Canonical(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
