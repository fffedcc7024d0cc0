//go:build unix

package mcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	quick := func(s *mcp.Server) { s.ConnectTimeout = 4 * time.Second }
	for mode, tc := range map[string]struct {
		tweak func(*mcp.Server)
		want  []string
	}{
		"exit":       {nil, []string{`connecting to mcp server "bad": the process ended (exit status 7)`, `it said: "no configuration found, token is [secret]"`}},
		"silent":     {quick, []string{`connecting to mcp server "bad": no answer within the 4s of ConnectTimeout`}},
		"chatty":     {nil, []string{"bytes that are not messages: its stdout is only for the protocol", "Have a nice day."}},
		"null":       {nil, []string{"unsupported protocol version"}},
		"refuse":     {nil, []string{"not today, [secret]"}},
		"no-list":    {quick, []string{`listing the tools of mcp server "bad": no answer within the 4s of ConnectTimeout`}},
		"endless":    {nil, []string{"its list of tools has more than 100 pages"}},
		"many":       {nil, []string{"it lists more than 1000 tools"}},
		"long":       {nil, []string{"its list of tools is longer than 262144 bytes (MaxMessageBytes)"}},
		"twins":      {nil, []string{`listing the tools of mcp server "bad": it lists 2 tools named "a": list the name in Except to omit them`}},
		"nameless":   {nil, []string{"it lists a tool without a name"}},
		"unreadable": {nil, []string{`listing the tools of mcp server "bad"`}},
		"schemas": {nil, []string{`tool "number": its schema: it is not an object; list it in Except to omit it`,
			`tool "array": its schema: compiling schema: arguments must be an object`}},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := hostile(t, mode)
			s.Env["TOKEN"] = "hunter2-hunter2"
			if tc.tweak != nil {
				tc.tweak(&s)
			}
			_, err := mcp.Connect(t.Context(), s)
			require.Error(t, err)
			var known *mcp.Error
			require.ErrorAs(t, err, &known)
			assert.Equal(t, "bad", known.Server)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// Inherited values are as secret as configured ones.
func TestInheritedSecretsAreStruckOut(t *testing.T) {
	t.Setenv("SERVICE_TOKEN", "hunter2-hunter2")
	s := hostile(t, "exit")
	s.Inherit = append(mcp.DefaultInherit(), "SERVICE_TOKEN")
	_, err := mcp.Connect(t.Context(), s)
	require.ErrorContains(t, err, `it said: "no configuration found, token is [secret]"`)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := mcp.Connect(ctx, hostile(t, "silent"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestConnectSaysThatTheCommandIsNotThere(t *testing.T) {
	_, err := mcp.Connect(t.Context(), mcp.Server{Name: "x", Command: []string{"/no/such/program", "-v"}})
	require.ErrorContains(t, err, `connecting to mcp server "x": starting "/no/such/program": `)
	assert.ErrorContains(t, err, "check Command, Dir and PATH")
}

func TestConnectSaysAllThatIsWrongWithTheServer(t *testing.T) {
	for want, s := range map[string]mcp.Server{
		"the name must be 1 to 32 letters":        {Command: []string{"a"}},
		"digits, - and single _ between them":     {Name: "a__b", Command: []string{"a"}},
		"it has both a Command and a URL":         {Name: "a", Command: []string{"a"}, URL: "http://x"},
		"it has neither a Command nor a URL":      {Name: "a"},
		"the URL must be a whole http or https":   {Name: "a", URL: "localhost:80"},
		"begins with an empty word":               {Name: "a", Command: []string{""}},
		`the pattern "[" in Only or Except`:       {Name: "a", Command: []string{"a"}, Only: []string{"["}},
		`the variable "A=B" in Env cannot be set`: {Name: "a", Command: []string{"a"}, Env: map[string]string{"A=B": "c"}},
	} {
		_, err := mcp.Connect(t.Context(), s)
		require.ErrorContains(t, err, want)
	}
}

// With a server named a_, the tool move would be mcp__a___move, which is also a name of server a's tools.
func TestServerNamesDoNotOverlap(t *testing.T) {
	for _, name := range []string{"a_", "_a", "_", "a__b"} {
		_, err := mcp.Connect(t.Context(), mcp.Server{Name: name, Command: []string{"/no/such/program"}})
		require.ErrorContains(t, err, "the name must be", name)
	}
	_, err := mcp.Connect(t.Context(), mcp.Server{Name: "a_b-c", Command: []string{"/no/such/program"}})
	require.NotContains(t, err.Error(), "the name must be")
}

func TestAServerOfTheNextProtocol(t *testing.T) {
	c := connect(t, hostile(t, "modern"))
	assert.Equal(t, `{"a":1}`, answer(t, t.Context(), c, "mcp__bad__echo", `{"a":1}`).Text()[:7])
}

func TestOnlyAndExcept(t *testing.T) {
	s := hostile(t, "twins")
	s.Except = []string{"a"}
	assert.Equal(t, []string{"mcp__bad__b"}, names(connect(t, s)))

	s = hostile(t, "")
	s.Only, s.Except = []string{"h*", "echo", "die*"}, []string{"die"}
	assert.Equal(t, []string{"mcp__bad__die-softly", "mcp__bad__echo", "mcp__bad__hang", "mcp__bad__huge"}, names(connect(t, s)))

	s.Only, s.Except = []string{"ecko"}, []string{"dye"}
	_, err := mcp.Connect(t.Context(), s)
	require.ErrorContains(t, err, `unknown tool "ecko", which Only or Except names; available: ["lie"`)
	require.ErrorContains(t, err, `"dye"`)
}

func names(c *mcp.Client) []string {
	var all []string
	for _, tool := range c.Tools() {
		all = append(all, tool.Spec().Name)
	}
	return all
}

func TestOddNames(t *testing.T) {
	c := connect(t, hostile(t, "odd"))
	all := names(c)
	assert.Equal(t, []string{
		"mcp__bad__a_b_2e7336dc", "mcp__bad__a_b_c14cddc0", "mcp__bad__x_y__",
		"mcp__bad__longlonglonglonglonglonglonglonglonglonglongl_55b71ce2",
	}, all)
	assert.NotNil(t, executor(t, c))
	assert.Equal(t, "Be careful.", c.Instructions())
}
