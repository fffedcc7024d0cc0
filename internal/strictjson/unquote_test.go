package strictjson

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestUnquote(t *testing.T) {
	for raw, want := range map[string]string{
		`""`: "", `"a b"`: "a b", `"é"`: "é", `"\u0061\n\""`: "a\n\"", `"\ud83d\ude00"`: "😀", `"\\"`: `\`,
	} {
		got, ok := Unquote(raw)
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"", `"`, "7", "null", `"a`, `"a"b`, `"a" `, `"\ud83d"`, "\"\xff\"", "\"\n\"", `"\x"`, `"\"`} {
		_, ok := Unquote(raw)
		assert.False(t, ok, raw)
	}
}

func TestReadsBy(t *testing.T) {
	assert.Equal(t, ByKind, ReadsBy(reflect.TypeFor[time.Duration]()))
	assert.Equal(t, ByKind, ReadsBy(reflect.TypeFor[struct{ time.Month }]()))
	assert.Equal(t, ByText, ReadsBy(reflect.TypeFor[netip.Addr]()))
	assert.Equal(t, ByJSON, ReadsBy(reflect.TypeFor[big.Int]()))
	assert.Equal(t, ByJSON, ReadsBy(reflect.TypeFor[json.RawMessage]()))
}

func ExampleUnquote() {
	raw, _ := Lookup(`{"path": "\/etc\/passwd"}`, "path")
	text, _ := Unquote(raw)
	fmt.Println(raw, text)
	// Output:
	// "\/etc\/passwd" /etc/passwd
}
