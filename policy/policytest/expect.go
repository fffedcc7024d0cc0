package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// expectation is the expected result. Unset members accept any value. In a file, a single word is the decision.
type expectation struct {
	// Decision is a decision, pass or failed.
	Decision string `key:"decision"`
	// Rule is the deciding rule: its ID, or policy/ID.
	Rule   string      `key:"rule"`
	Reason *wantedText `key:"reason"`
	// Error is the error with which a rule fails.
	Error *wantedText `key:"error"`
	// Told is the answer that the model receives for the call. Leaves is the text after the point's rules changed it.
	Told   *wantedText `key:"told"`
	Leaves *wantedText `key:"leaves"`
	// Arguments are the arguments with which the call would run.
	Arguments Value            `key:"arguments"`
	Ran       *bool            `key:"ran"`
	Context   []wantedText     `key:"context"`
	Metadata  map[string]Value `key:"metadata"`
	// Rules maps rule IDs to results: a decision, pass, skip, failed or not_asked; with the prefix "shadow " for a
	// rule in shadow.
	Rules map[string]string `key:"rules"`
	// Status is the final status of a transcript's run. Stopped is the reason with which a rule stopped it.
	Status  string      `key:"status"`
	Stopped *wantedText `key:"stopped"`
	// Requests lists the requests that the receiver received, in order. Files holds file contents at the end.
	Requests []expectedRequest     `key:"requests"`
	Files    map[string]wantedText `key:"files"`

	node yamlfile.Node
}

type expect expectation

// ReadNode reads a word, or a mapping.
func (x *expectation) ReadNode(n yamlfile.Node) {
	x.node = n
	if n.Kind() == yamlfile.TextNode {
		x.Decision = n.Raw()
	} else if !n.Decode((*expect)(x)) {
		return
	}
	if x.Decision != "" && !slices.Contains(decisions, x.Decision) {
		at := n.Find("decision")
		if n.Kind() == yamlfile.TextNode {
			at = n
		}
		at.Wrong("%s", yamlfile.Unknown("decision", x.Decision, decisions))
	}
	for id, said := range x.Rules {
		if word := strings.TrimPrefix(said, "shadow "); !slices.Contains(decisions, word) && word != SaidSkip && word != SaidNotAsked {
			n.Find("rules", id).Wrong("%s", yamlfile.Unknown("result of a rule", word, append(decisions, SaidSkip, SaidNotAsked)))
		}
	}
}

// decisions lists the possible results of asking rules.
var decisions = append(lo.Map([]hooks.Decision{
	hooks.Pass, hooks.Allow, hooks.Deny, hooks.Ask, hooks.StopRun, hooks.Rewrite, hooks.Mock, hooks.Replace, hooks.Withhold,
	hooks.Approve, hooks.RejectAndEnd, hooks.Continue,
}, func(d hooks.Decision, _ int) string { return string(d) }), SaidFailed)

// wantedText is an expected text: the text itself, or a regular expression between slashes that must match in it.
type wantedText struct {
	text    string
	pattern *regexp.Regexp
}

// Set parses the text.
func (t *wantedText) Set(text string) error {
	t.text = text
	if len(text) > 1 && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
		var err error
		if t.pattern, err = regexp.Compile(text[1 : len(text)-1]); err != nil {
			return fmt.Errorf("expected a text, or a regular expression between slashes: %w", err)
		}
	}
	return nil
}

// fill replaces names by their values.
func (t *wantedText) fill(in func(string) string) {
	if t.pattern == nil {
		t.text = in(t.text)
	}
}

// is compares the text with got, ignoring a trailing newline.
func (t *wantedText) is(got string) bool {
	if t.pattern != nil {
		return t.pattern.MatchString(got)
	}
	return strings.TrimSuffix(t.text, "\n") == strings.TrimSuffix(got, "\n")
}

// expectedRequest is one request to the receiver.
type expectedRequest struct {
	Method string `key:"method"`
	Path   string `key:"path"`
	// Body lists the members that the request's object must have, with their values; a body of another type must be
	// equal.
	Body    Value                 `key:"body"`
	Headers map[string]wantedText `key:"headers"`
}

// difference is one deviation from an expectation.
type difference struct {
	key  string
	text string
}

// differences collects deviations.
type differences []difference

func (d *differences) say(key, format string, args ...any) {
	*d = append(*d, difference{key, fmt.Sprintf(format, args...)})
}

// same compares two words.
func (d *differences) same(key, want, got string) {
	if want != "" && want != got {
		d.say(key, "expected %s, got %s", want, lo.CoalesceOrEmpty(got, "nothing"))
	}
}

// compareText compares two texts.
func (d *differences) compareText(key string, want *wantedText, got string) {
	if want != nil && !want.is(got) {
		d.say(key, "expected %s, got %s", quoteText(want.text), quoteText(got))
	}
}

func quoteText(text string) string {
	if strings.Contains(text, "\n") {
		return "\n      " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n      ") + "\n   "
	}
	if strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// json compares a JSON value.
func (d *differences) json(key string, want Value, got []byte) {
	if len(want) > 0 && !sameJSON(want, got) {
		d.say(key, "expected %s, got %s", want, lo.CoalesceOrEmpty(string(got), "nothing"))
	}
}

// sameJSON compares values, and numbers by their digits.
func sameJSON(a, b []byte) bool { return bytes.Equal(canonical(a), canonical(b)) }

func canonical(text []byte) []byte {
	var v any
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if in.Decode(&v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// compareReport compares a report.
func (x *expectation) compareReport(d *differences, r *Report) {
	got := string(r.Decision)
	if r.Failed {
		got = SaidFailed
	}
	if x.Decision != "" && x.Decision != got && (x.Decision != string(r.Decision) || !r.Failed) {
		d.say("decision", "expected %s, got %s", x.Decision, r.decisionLine())
	}
	if x.Rule != "" && !policy.NamesRule(x.Rule, r.Rule) {
		d.say("rule", "expected %s to decide, got %s", x.Rule, lo.CoalesceOrEmpty(r.Rule, "no rule"))
	}
	d.compareText("reason", x.Reason, r.Reason)
	if x.Error != nil && !lo.SomeBy(r.Rules, func(s Said) bool { return s.Error != "" && x.Error.is(s.Error) }) {
		d.compareText("error", x.Error, r.Error)
	}
	d.compareText("told", x.Told, r.Told)
	d.compareText("leaves", x.Leaves, r.Leaves)
	d.json("arguments", x.Arguments, r.Arguments)
	if x.Ran != nil && (r.Ran == nil || *r.Ran != *x.Ran) {
		d.say("ran", "expected the tool %s", lo.Ternary(*x.Ran, "to run, but it would not", "not to run, but it would"))
	}
	if x.Context != nil {
		x.checkContext(d, r.Context)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Metadata)) {
		got, _ := json.Marshal(r.Metadata[name]) //nolint:errchkjson // invalid JSON is not equal to any value
		d.json("metadata."+name, x.Metadata[name], got)
	}
	for _, id := range slices.Sorted(maps.Keys(x.Rules)) {
		x.checkRule(d, r, id)
	}
	if x.Stopped != nil {
		d.compareText("stopped", x.Stopped, lo.FromPtr(r.Stopped).Message)
	}
}

func (x *expectation) checkContext(d *differences, got []string) {
	if len(got) != len(x.Context) {
		d.say("context", "expected %d texts for the model, got %d: %q", len(x.Context), len(got), got)
		return
	}
	for i := range x.Context {
		d.compareText(fmt.Sprintf("context.%d", i), &x.Context[i], got[i])
	}
}

func (x *expectation) checkRule(d *differences, r *Report, id string) {
	said, ok := lo.Find(r.Rules, func(s Said) bool { return policy.NamesRule(id, s.Rule) })
	if !ok {
		d.say("rules."+id, "unknown rule %q at %s", id, r.Point)
		return
	}
	got := said.Said
	if said.Shadow && (got != SaidSkip && got != SaidNotAsked) {
		got = "shadow " + got
	}
	if want := x.Rules[id]; want != got && "shadow "+want != got {
		d.say("rules."+id, "expected %s, got %s", want, lo.Ternary(said.Error == "", got, got+": "+said.Error))
	}
}

// checkWorld compares requests and files with the expectation.
func (x *expectation) checkWorld(d *differences, w *world) {
	if x.Requests != nil {
		got := w.requests()
		if len(got) != len(x.Requests) {
			texts := lo.Map(got, func(r received, _ int) string { return r.String() })
			d.say("requests", "expected %d, got %d: %s", len(x.Requests), len(got), strings.Join(texts, ", "))
			return
		}
		for i, want := range x.Requests {
			want.compareRequest(d, fmt.Sprintf("requests.%d", i), got[i])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(x.Files)) {
		want := x.Files[path]
		text, err := w.read(path)
		if err != nil {
			d.say("files."+path, "%v", err)
			continue
		}
		d.compareText("files."+path, &want, text)
	}
}

func (x expectedRequest) compareRequest(d *differences, key string, got received) {
	d.same(key+".method", x.Method, got.Method)
	d.same(key+".path", x.Path, got.Path)
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		want := x.Headers[name]
		d.compareText(key+".headers."+name, &want, got.Header.Get(name))
	}
	if len(x.Body) == 0 {
		return
	}
	var want, body map[string]json.RawMessage
	if json.Unmarshal(x.Body, &want) != nil || json.Unmarshal(got.Body, &body) != nil {
		d.json(key+".body", x.Body, got.Body)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		d.json(key+".body."+name, Value(want[name]), body[name])
	}
}
