package condition

import (
	"encoding/json"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

func FuzzCompile(f *testing.F) {
	for _, text := range append(typical,
		"", "'", "${", "${A}", "'${STAGE}'", "r'\\' == tool", "'''a\n''' == tool // ${x}", "args.?a.b[?0].orValue(1) == 2", "has(args.a.b)",
		"[1,2].map(x, x*x).exists(y, y > 3)", "cel.bind(x, tool + tool, x + x) == ''", "'%s'.format([args])", "shell.commands(tool).all(c, c.flag('r'))",
		"run.id.x", "$", "\xff", "((((((((((", "tool.matches('a{1000}{1000}')", "{'a': args}.a.b == 1", "b'\\x00' == bytes(tool)", "tool in [", "@x", "🦊 == 1",
	) {
		f.Add(text)
	}
	l, err := New(Options{Variables: map[string]any{"workspace": "/srv/app", "places": []any{"/"}}, CostLimit: 20_000})
	require.NoError(f, err)
	in, err := FromJSON([]byte(`{"tool":"bash","arguments":{"a":{"b":[1,"x",null]},"command":"ls $(x)","n":9007199254740993}}`), hooks.PreToolUse)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := l.Expression(text, hooks.PreToolUse)
		if err != nil {
			wrong, ok := err.(Errors) //nolint:errorlint // it is not wrapped
			require.True(t, ok, "%T", err)
			for _, one := range wrong {
				require.True(t, one.Offset >= 0 && one.Offset <= len(text) && one.Line > 0 && one.Column > 0, "%+v", one)
				require.NotEmpty(t, one.Message)
			}
			return
		}
		v, err := c.Value(t.Context(), in)
		require.NotEqual(t, v == nil, err == nil)
		if err == nil {
			require.False(t, types.IsUnknownOrError(v))
			_ = showValue(v)
		}
		_, _ = requireSameAsCEL(t, c.c, in, "")
	})
}

func FuzzValues(f *testing.F) {
	for _, value := range []string{"", "' || 1==1", "\x00", "${STAGE}", "safe", "\n", `"`, "~/x", "../..", "https://[::1", "if; $(", "*[a", "0x7f.1"} {
		f.Add(value, value+"x")
	}
	l, err := New(Options{Workspace: "/srv/app", Home: "/home/x"})
	require.NoError(f, err)
	var list []*Condition
	for _, text := range []string{
		"args.v == 'safe'", "glob(args.v, 'sa*') || path.within(args.v, '/srv')", "path.matches(args.v, ['**/x', '~/y'])", "shell.clear(args.v)",
		"shell.commands(args.v).exists(c, c.name == args.w)", "host.private(args.v) || host.matches(args.w, args.v)", "url.host(args.v) == url.path(args.w)",
		"glob(args.v, args.w)", "args.v + args.w == args.w + args.v", "args[args.v] == args.w", "path.clean(args.v) == path.base(args.w)",
		"${STAGE} == args.v && tool == args.w && args.v.replace(args.w, args.v).size() > 3",
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(f, err)
		list = append(list, c)
	}
	f.Fuzz(func(t *testing.T, v, w string) {
		event, err := json.Marshal(map[string]any{
			"point": "PreToolUse", "tool": w, "arguments": map[string]any{"v": v, "w": w}, "variables": map[string]string{"STAGE": v},
		})
		require.NoError(t, err)
		in, err := FromJSON(event, "")
		require.NoError(t, err)
		for i, c := range list {
			yes, err := c.Test(t.Context(), in)
			if i == 0 {
				require.NoError(t, err)
				require.Equal(t, v == "safe", yes)
			}
			if err != nil {
				require.False(t, yes)
				require.NotEmpty(t, err.Error())
			}
			_, _ = requireSameAsCEL(t, c.c, in, string(event))
		}
	})
}

// FuzzDecode compares our reader with the JSON library.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		benchArguments, `{}`, ` {"a" : [ ] , "b" : {"c":[1, -2.5e3 ,true,false,null]}} `, `{"a":"\u00e9\"\\/\n","é":"\ud83d\ude00"}`, `{"n":1e999}`, `{"n":-0}`,
		`{"a":[[],[{}],"]","}"]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decodeObject(text)
		if text == "" || err != nil {
			return
		}
		var want map[string]any
		require.NoError(t, strictjson.Unmarshal(text, &want))
		require.Len(t, got, len(want))
		for name, v := range want {
			same(t, valueOf(v), got[name].(ref.Val))
		}
	})
}

func same(t *testing.T, want, got ref.Val) {
	t.Helper()
	if types.IsError(want) {
		require.True(t, types.IsError(got))
		return
	}
	assert.Equal(t, want.Type().TypeName(), got.Type().TypeName())
	assert.Equal(t, shownIn(want, 9), shownIn(got, 9))
}
