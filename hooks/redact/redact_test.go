package redact_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/toolexec"
)

func redactor(t testing.TB, o redact.Options) *redact.Redactor {
	t.Helper()
	r, err := redact.New(o)
	require.NoError(t, err)
	return r
}

// long makes the random part of a made-up token.
func long(n int) string { return strings.Repeat("a1B2", n/4+1)[:n] }

// The tokens are put together here, so that no scanner takes them for real ones.
var wellKnown = map[string]string{
	"AKIA" + "IOSFODNN7EXAMPLE":                           "AWS key",
	"ghp_" + long(36):                                     "GitHub token",
	"github_pat_" + long(22) + "_" + long(59):             "GitHub token",
	"glpat-" + long(20):                                   "GitLab token",
	"xoxb-" + "123456789012-" + long(24):                  "Slack token",
	"https://hooks.slack.com/services/T0/B0/" + long(24):  "Slack webhook",
	"sk-ant-api03-" + long(90):                            "Anthropic key",
	"sk-proj-" + long(48):                                 "OpenAI key",
	"sk-" + long(48):                                      "OpenAI key",
	"AIza" + long(35):                                     "Google key",
	"ya29." + long(60):                                    "Google token",
	"GOCSPX-" + long(28):                                  "Google secret",
	"sk_live_" + long(24):                                 "Stripe key",
	"npm_" + long(36):                                     "npm token",
	"pypi-" + long(80):                                    "PyPI token",
	"hf_" + long(34):                                      "Hugging Face token",
	"SG." + long(22) + "." + long(43):                     "SendGrid key",
	"eyJ" + long(20) + ".eyJ" + long(40) + "." + long(43): "JWT",
	"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n" + long(64) + "\n" + long(64) + "==\n-----END RSA PRIVATE KEY-----": "private key",
	"-----BEGIN PRIVATE KEY-----\\n" + long(64) + "\\n-----END PRIVATE KEY-----\\n":                                                                            "private key",
	"-----BEGIN OPENSSH PRIVATE KEY-----\n" + long(70) + "\n" + long(70):                                                                                       "private key", // cut off
}

func TestWellKnown(t *testing.T) {
	r := redactor(t, redact.Options{})
	for secret, kind := range wellKnown {
		assert.Contains(t, redact.Kinds(), kind)
		for _, around := range [][2]string{{"", ""}, {"it is ", " I think"}, {"(", ")"}, {"key=\"", "\""}, {"x\n", "\ny"}, {"url?k=", "&b=c"}} {
			if kind == "private key" && around[0] == "it is " || strings.HasPrefix(secret, "https:") && around[0] == "url?k=" {
				continue // words after a key that is cut off go with it
			}
			text, counts := r.Text(around[0] + secret + around[1])
			assert.NotContains(t, text, long(20), "%s", secret)
			assert.Contains(t, text, "[redacted: "+kind+"]", "%s", secret)
			assert.Equal(t, redact.Counts{kind: 1}, counts, "%s", text)
		}
	}
}

func TestSetValues(t *testing.T) {
	r := redactor(t, redact.Options{})
	for text, want := range map[string]string{
		"password=hunter2":                           "password=[redacted: password]",
		"DB_PASSWORD=p$w(1)!x y":                     "DB_PASSWORD=[redacted: password] y",
		"export API_KEY='a b c'":                     "export API_KEY='[redacted: password]'",
		`githubToken: "a\"b c"`:                      `githubToken: "[redacted: password]"`,
		`{"x": {"client_secret": "s3cr3t!", "n": 1}`: `{"x": {"client_secret": "[redacted: password]", "n": 1}`,
		`{\"password\": \"hunter2\", \"b\": 1}`:      `{\"password\": \"[redacted: password]\", \"b\": 1}`,
		"passwd := hunter22":                         "passwd := [redacted: password]",
		"https://user:hunter2@example.com/x":         "https://user:[redacted: URL password]@example.com/x",
		"postgres://:p@ss:word@db/x":                 "postgres://:[redacted: URL password]@db/x",
		"Authorization: Basic dXNlcjpodW50ZXIy":      "Authorization: Basic [redacted: authorization]",
		`curl -H "Authorization: token abcdefgh" x`:  `curl -H "Authorization: token [redacted: authorization]" x`,
		"Bearer " + long(30):                         "Bearer [redacted: authorization]",
		"?access_token=" + long(12) + "&x=1":         "?access_token=[redacted: password]&x=1",
		// What is none.
		"password: string":              "",
		"the password is not here":      "",
		"Enter password: ":              "",
		"max_tokens=4096":               "",
		"token: 12":                     "",
		`token = os.Getenv("TOKEN")`:    "",
		"token=os.environ[\"TOKEN\"]":   "",
		"password=${PASSWORD}":          "",
		"password: <your password>":     "",
		`password: "********"`:          "",
		"https://example.com:8080/a@b":  "",
		"credentials:\n  user: ada\n":   "",
		"func (t *token) next() {":      "",
		"password=[redacted: password]": "",
	} {
		if want == "" {
			want = text
		}
		got, _ := r.Text(text)
		assert.Equal(t, want, got)
	}
}

// A literal secret is found in every form, alone and inside of other text.
func TestLiterals(t *testing.T) {
	const secret = "Tr0ub4dor&3 <\"ü/+"
	r := redactor(t, redact.Options{Literals: map[string]string{"DB": secret, "UNSET": ""}})
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	inner := strings.Trim(string(quoted), `"`)
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)), inner,
		strings.ReplaceAll(strings.ReplaceAll(inner, `\u003c`, "<"), `\u0026`, "&"),
	} {
		text, counts := r.Text("it is >" + form + "< there")
		assert.Equal(t, "it is >[redacted: DB]< there", text)
		assert.Equal(t, redact.Counts{"DB": 1}, counts)
	}
	for shift := range 6 {
		text, counts := r.Text(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", shift) + secret + ":more")))
		assert.Equal(t, redact.Counts{"DB": 1}, counts, text)
	}
	text, _ := r.Text(string(quoted))
	assert.Equal(t, `"[redacted: DB]"`, text)
}

// Encoders do not agree on what to escape, nor on the case of the digits.
func TestLiteralsInURLs(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"DB": "p@s s/wo!rd*ü", "plain": "correcthorse"}})
	for _, form := range []string{"p%40s%20s%2Fwo%21rd%2A%C3%BC", "p%40s%20s/wo!rd*%c3%bc", "p@s+s%2fwo!rd*%c3%BC", "p%40s+s/wo%21rd*ü"} {
		text, counts := r.Text("https://db/?q=" + form + "&x=1")
		assert.Equal(t, "https://db/?q=[redacted: DB]&x=1", text)
		assert.Equal(t, redact.Counts{"DB": 1}, counts)
	}
}

// A literal may be the whole of a file: what is around it there is not part of it.
func TestLiteralsWithSpaceAround(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"DB": " correct horse\r\n", "UNSET": "\n"}})
	text, _ := r.Text("it is >correct horse< there")
	assert.Equal(t, "it is >[redacted: DB]< there", text)
}

func TestTheLongestLiteralWins(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"short": "hunter2", "long": "hunter2hunter3"}})
	text, counts := r.Text("hunter2hunter3 hunter2")
	assert.Equal(t, "[redacted: long] [redacted: short]", text)
	assert.Equal(t, redact.Counts{"long": 1, "short": 1}, counts)
}

func TestJSONStaysJSON(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"L": "line\none"}, Patterns: []redact.Pattern{{"quote", `q"uote`}, {"brace", `[{}]+`}}})
	for text, want := range map[string]string{
		`{ "password" : "hunter2" , "n": 1.50e3 }`:      `{ "password" : "[redacted: password]" , "n": 1.50e3 }`,
		`{"a":["x","line\none"],"line\none":"q\"uote"}`: `{"a":["x","[redacted: L]"],"[redacted: L]":"[redacted: quote]"}`,
		`{"password":""}`:                                    ``,
		`{"password":null,"token":17}`:                       ``,
		`{"\u0070assword":"\u0068unter2"}`:                   `{"\u0070assword":"[redacted: password]"}`,
		`{"body":"{\"token\":\"s3cr3t!\",\"n\":1}"}`:         `{"body":"{\"token\":\"[redacted: password]\",\"n\":1}"}`,
		`["{x}","\ud800 hunter"]`:                            `["[redacted: brace]x[redacted: brace]","\ud800 hunter"]`,
		`"password=hunter2"`:                                 `"password=[redacted: password]"`,
		"  {\"token\": \"s3cr3t!\"}\n":                       "  {\"token\": \"[redacted: password]\"}\n",
		"{\"token\":\"s3cr3t!\"}\n{\"secret\":\"a\\\"b c\"}": "{\"token\":\"[redacted: password]\"}\n{\"secret\":\"[redacted: password]\"}",
	} {
		if want == "" {
			want = text
		}
		got, _ := r.Text(text)
		if strings.Count(text, "\n") == 1 && strings.HasPrefix(text, "{\"") { // lines of JSON are a text; braces are no pattern there
			got, _ = redactor(t, redact.Options{}).Text(text)
		}
		assert.Equal(t, want, got)
	}
}

// Whatever JSON it is, what was valid stays valid, and numbers without a secret are not touched.
func TestAnyJSONStaysJSON(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"L": `a"\b`}, Patterns: []redact.Pattern{{"n", `7`}, {"p", `[a-c"\\]+`}}})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{`a"\b`, "password", "token", "hunter2", "7", "é", "\u2028", `\`, `"`, "{", "[1]", `{"a":1}`, ""})
		value := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			value[text.Draw(t, "name")] = []any{text.Draw(t, "a") + text.Draw(t, "b"), 12345, nil, map[string]any{"token": text.Draw(t, "c")}}
		}
		in, err := json.MarshalIndent(value, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		require.NoError(t, err)
		out, counts := r.Text(string(in))
		require.True(t, json.Valid([]byte(out)), "%s\n%s", in, out)
		require.Equal(t, strings.Count(string(in), "12345"), strings.Count(out, "12345"))
		if len(counts) == 0 {
			require.Equal(t, string(in), out)
		}
	})
}

// A literal is gone wherever it stood; doing it twice changes nothing more; what has no secret is untouched.
func TestRandomTexts(t *testing.T) {
	const secret = "S3cr3t-V4lue"
	r := redactor(t, redact.Options{Literals: map[string]string{"L": secret}})
	piece := rapid.OneOf(rapid.SampledFrom([]string{secret, "password=", `"token": "`, `"`, "Bearer ", "://a:", "@", "\n", "{", "}", "sk-", "-----BEGIN PRIVATE KEY-----"}),
		rapid.StringMatching(`[ -~]{0,20}`))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		once, counts := r.Text(text)
		require.NotContains(t, once, secret)
		if len(counts) == 0 {
			require.Equal(t, text, once)
		}
		twice, _ := r.Text(once)
		require.NotContains(t, twice, secret)
	})
}

func TestContent(t *testing.T) {
	r := redactor(t, redact.Options{})
	token := "ghp_" + long(36)
	data := func(text string) string {
		return "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text))
	}
	in := agent.ContentOf(
		agent.Text("a "+token),
		agent.File("env-"+token+".txt", "text/plain", []byte("T="+token+"\n")),
		agent.File("x.bin", "application/octet-stream", []byte("\xff\x00"+token)),
		agent.FileURL("y", "https://u:"+long(8)+"@h/"),
		agent.FileURL("z", data("k "+token)),
		agent.Image("image/png", []byte("\x89PNG"+token)),
		agent.Image("image/svg+xml", []byte(token)),
		agent.Reasoning("so it is "+token, token),
	)
	out, counts := r.Content(in)
	const m = "[redacted: GitHub token]"
	assert.Equal(t, agent.ContentOf(
		agent.Text("a "+m),
		agent.File("env-"+m+".txt", "text/plain", []byte("T="+m+"\n")),
		agent.File("x.bin", "application/octet-stream", []byte("\xff\x00"+token)),
		agent.FileURL("y", "https://u:[redacted: URL password]@h/"),
		agent.FileURL("z", data("k "+m)),
		agent.Image("image/png", []byte("\x89PNG"+token)),
		agent.Image("image/svg+xml", []byte(m)),
		agent.Reasoning("so it is "+m, ""),
	), out)
	assert.Equal(t, redact.Counts{"GitHub token": 6, "URL password": 1}, counts)

	same := agent.ContentOf(agent.Text("a"), agent.Text("b"))
	out, counts = r.Content(same)
	assert.True(t, same.Equal(out))
	assert.Empty(t, counts)
}

func TestOptions(t *testing.T) {
	_, err := redact.New(redact.Options{
		Literals: map[string]string{"PIN": "123", "a]b": "long enough"},
		Patterns: []redact.Pattern{{"broken", "("}, {"empty", "a*"}, {"", "x"}},
		Without:  []string{"passwrod"},
	})
	for _, want := range []string{
		`creating a redactor: `, `the literal "PIN" has less than 4 bytes`, `pattern of "broken": `, `pattern of "empty": it matches the empty text`,
		`invalid kind ""`, `invalid kind "a]b": `, `unknown kind "passwrod" in Without: expected one of private key, AWS key`,
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "123")

	r := redactor(t, redact.Options{Without: []string{"password"}, Patterns: []redact.Pattern{{"ticket", `ticket-(\d+)`}}})
	text, counts := r.Text(`{"token":"nextToken","t":"ticket-17 password=x"}`)
	assert.Equal(t, `{"token":"nextToken","t":"ticket-[redacted: ticket] password=x"}`, text)
	assert.Equal(t, redact.Counts{"ticket": 1}, counts)
}

func TestHooks(t *testing.T) {
	token := "ghp_" + long(36)
	var told []redact.Report
	r := redactor(t, redact.Options{Told: func(_ context.Context, r redact.Report) { told = append(told, r) }})
	hookstest.Cases{
		"nothing": {At: hookstest.ToolResult("cat", `{}`, "plain"), Leaving: "plain"},
		"token":   {At: hookstest.ToolResult("cat", `{}`, "T="+token), Want: hooks.Replace, Leaving: "T=[redacted: GitHub token]"},
		"denied": {At: hookstest.ToolResult("cat", `{}`, "").WithResult(agent.ToolResult{
			Content: agent.TextContent("denied for " + token), Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied,
		}), Want: hooks.Replace, Leaving: "denied for [redacted: GitHub token]"},
		"failed": {At: hookstest.ToolResult("cat", `{}`, "").WithResult(agent.ToolResult{
			Content: agent.TextContent("no " + token), Status: agent.ToolFailed, Err: errors.New("no"),
		}), Want: hooks.Replace, Leaving: "no [redacted: GitHub token]"},
	}.Test(t, r.Results())
	require.Len(t, told, 3)
	assert.Equal(t, "cat", told[0].Tool)
	assert.NotEmpty(t, told[0].CallID)
	assert.Equal(t, redact.Counts{"GitHub token": 1}, told[0].Counts)

	f := hookstest.Fire(t, r.Replies(), hookstest.Reply("your token is "+token))
	assert.Equal(t, "your token is [redacted: GitHub token]", f.Text())
	assert.Equal(t, hooks.PostInference, told[3].Point)
}

// Secrets of digits are numbers in JSON.
func TestNumbersInJSON(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"PIN": "483920"}})
	text, counts := r.Text(`{"a": [483920,12.5, -4839200], "483920": 1}`)
	assert.JSONEq(t, `{"a": ["[redacted: PIN]", 12.5, "-[redacted: PIN]0"], "[redacted: PIN]": 1}`, text)
	assert.Equal(t, redact.Counts{"PIN": 3}, counts)

	r = redactor(t, redact.Options{Patterns: []redact.Pattern{{Kind: "card", Regexp: `\b4\d{15}\b`}}})
	text, _ = r.Text(`4111111111111111`)
	assert.Equal(t, `[redacted: card]`, text)
	text, _ = r.Text(`{"card":4111111111111111}`)
	assert.Equal(t, `{"card":"[redacted: card]"}`, text)
}

// In a real agent, no part of the state, no event and no later request of the model has the secret.
func TestInAnAgent(t *testing.T) {
	const secret = "correct horse battery"
	var mu sync.Mutex
	count := 0
	r := redactor(t, redact.Options{
		Literals: map[string]string{"phrase": secret},
		Told:     func(_ context.Context, r redact.Report) { mu.Lock(); defer mu.Unlock(); count += r.Counts["phrase"] },
	})
	cat := toolexec.Func("cat", "Reads.", func(_ context.Context, in struct{ N int }) (toolexec.Output, error) {
		switch in.N {
		case 3:
			return toolexec.Output{}, fmt.Errorf("cannot unlock with %q", secret)
		case 4:
			panic("no idea what to do with " + secret)
		}
		return toolexec.TextOutput(fmt.Sprintf("%d: %s", in.N, secret)), nil
	})
	model := agenttest.Script(
		agenttest.Say("").Call("cat", `{"N":1}`).Call("cat", `{"N":2}`).Call("cat", `{"N":3}`).Call("cat", `{"N":4}`),
		agenttest.Say("done"),
	)
	seen := agenttest.Record()
	a := builder.New().WithDriver(model).
		With(capability.UseTools(cat), capability.UseHooks(r.Results())).WithObserver(seen).Build().MustGet()
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	stored, err := json.Marshal(final)
	require.NoError(t, err)
	assert.NotContains(t, string(stored), secret)
	assert.Equal(t, 3, strings.Count(agenttest.Transcript(final), "[redacted: phrase]"))
	assert.Equal(t, 4, count)
	for _, e := range agenttest.Of[agent.ToolCallCompleted](seen) {
		assert.NotContains(t, e.Result.Text(), secret)
		assert.NotContains(t, fmt.Sprintf("%+v", e.Result.Err), secret)
	}
	for _, e := range agenttest.Of[hooks.Event](seen) {
		assert.NotContains(t, fmt.Sprintf("%+v", e), secret)
	}
}

// The time grows with the text, and is short for what is made to take long.
func BenchmarkText(b *testing.B) {
	r := redactor(b, redact.Options{Literals: map[string]string{"L": "correct horse"}})
	for name, piece := range map[string]string{
		"prose": "The quick brown fox jumps over the lazy dog. ", "keys": "-----BEGIN PRIVATE KEY-----", "urls": "x://a:", "sets": "password=", "json": "",
	} {
		text := strings.Repeat(piece, 64<<10/max(1, len(piece)))
		if name == "json" {
			text = "[" + strings.Repeat(`{"name":"value","n":12},`, 2700) + "0]"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}

// If a member's name marks its value as secret, the whole value is redacted, whatever else is found in it, in lists,
// and in headers, too.
func TestMembersAsAWhole(t *testing.T) {
	basic := "Basic " + long(24)
	r := redactor(t, redact.Options{})
	for text, want := range map[string]string{
		`{"password":"correct horse https://u:pw12345@h/ staple"}`:  `{"password":"[redacted: password]"}`,
		`{"token":["abcdefgh1", "abcdefgh2"]}`:                      `{"token":["[redacted: password]", "[redacted: password]"]}`,
		`[{"token":"abcdefgh1"},"abcdefgh2"]`:                       `[{"token":"[redacted: password]"},"abcdefgh2"]`,
		`{"headers":{"Authorization":"` + basic + `"}}`:             `{"headers":{"Authorization":"Basic [redacted: authorization]"}}`,
		`{"authorization":["ApiKey ` + long(24) + `"]}`:             `{"authorization":["[redacted: authorization]"]}`,
		"Authorization: ApiKey " + long(24):                         "Authorization: [redacted: authorization]",
		"Authorization: Digest username=\"x\", response=\"6629fa\"": "Authorization: Digest [redacted: authorization]",
		`{"token":"ghp_` + long(36) + `"}`:                          `{"token":"[redacted: GitHub token]"}`,
		`{"authorization":"required"}`:                              `{"authorization":"required"}`,
	} {
		got, _ := r.Text(text)
		assert.Equal(t, want, got)
		again, counts := r.Text(got)
		assert.Equal(t, got, again)
		assert.Empty(t, counts, again)
	}
	got, _ := redactor(t, redact.Options{Without: []string{"authorization"}}).Text(`{"Authorization":"` + basic + `"}`)
	assert.Contains(t, got, basic)
}

// Many a writer of JSON escapes what need not be, and not each text with JSON in it is JSON.
func TestLiteralsInJSONWithinText(t *testing.T) {
	r := redactor(t, redact.Options{Literals: map[string]string{"DB": "pä/ss\"w\\🐎"}})
	for _, form := range []string{`p\u00e4\/ss\"w\\\ud83d\udc0e`, `p\u00E4/ss\u0022w\\\uD83D\uDC0E`, `pä/ss\"w\\🐎`} {
		got, _ := r.Text(`log: {"db":"` + form + `"} at 12:00`)
		assert.Equal(t, `log: {"db":"[redacted: DB]"} at 12:00`, got)
	}
	got, _ := redactor(t, redact.Options{Literals: map[string]string{"DB": "a b/c"}}).Text("q=a+b/c&x")
	assert.Equal(t, "q=[redacted: DB]&x", got, "a form that leaves the slash as it is")
}
