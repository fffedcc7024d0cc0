package waiver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// Scope says which questions a waiver answers. Rule and Tool are required.
type Scope struct {
	// Rule is the name of the hook that asks: for a rule of a policy, the policy and the rule, such as "payments/large".
	Rule string `json:"rule"`
	// Tool is the name of the tool: see hooks.ToolMatching for patterns.
	Tool string `json:"tool"`
	// Arguments are patterns of arguments by their paths: see hooks.ArgumentMatching. A pattern that is a number, true, false or null
	// matches that value, too. A call must match all of them.
	Arguments map[string]string `json:"arguments,omitempty"`
	// Reason says why there is a waiver.
	Reason string `json:"reason,omitempty"`
}

// New returns a waiver of a scope, with a new ID. By is its author. Expires must be in the future.
func New(s Scope, by string, expires time.Time) (durable.Waiver, error) {
	now := time.Now()
	switch {
	case s.Rule == "" || s.Tool == "":
		return durable.Waiver{}, errors.New("making a waiver: name the rule and the tool that it is about")
	case by == "":
		return durable.Waiver{}, errors.New("making a waiver: its author is missing")
	case !expires.After(now):
		return durable.Waiver{}, fmt.Errorf("making a waiver: it expires at %s, which is not in the future", expires.UTC().Format(time.RFC3339))
	}
	err := cmp.Or(s.matcher().Err(), invisible.CheckName("the author's name", by), invisible.CheckText("the reason", s.Reason, invisible.MaxReason))
	if err != nil {
		return durable.Waiver{}, fmt.Errorf("making a waiver: %w", err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return durable.Waiver{}, fmt.Errorf("making a waiver: %w", err)
	}
	id := "wvr_" + strings.TrimPrefix(string(agent.NewRunID()), "run_")
	return durable.Waiver{ID: id, By: by, Created: now, Expires: expires, Data: data}, nil
}

// ScopeOf returns the scope of a waiver.
func ScopeOf(w durable.Waiver) (s Scope, err error) {
	if err = json.Unmarshal(w.Data, &s); err == nil {
		err = s.matcher().Err()
	}
	if err != nil {
		err = fmt.Errorf("reading waiver %s: %w", w.ID, err)
	}
	return s, err
}

// Covers reports whether the scope has the question of a rule about a call. Rule is as in Scope.
func (s Scope) Covers(rule string, call agent.ToolCall) bool {
	return rule != "" && rule == s.Rule && s.matcher().MatchesCall(call)
}

// String describes the scope in a line, such as "payments/large: transfer with to=landlord".
func (s Scope) String() string {
	text := s.Rule + ": " + s.Tool
	if len(s.Arguments) == 0 {
		return text
	}
	arguments := lo.MapToSlice(s.Arguments, func(path, pattern string) string { return path + "=" + pattern })
	slices.Sort(arguments)
	return text + " with " + strings.Join(arguments, ", ")
}

// matcher returns what matches the calls of the scope.
func (s Scope) matcher() hooks.Matcher {
	matchers := []hooks.Matcher{hooks.ToolMatching(s.Tool)}
	for _, path := range slices.Sorted(maps.Keys(s.Arguments)) {
		m := hooks.ArgumentMatching(path, s.Arguments[path])
		if value := s.Arguments[path]; isPlainValue(value) {
			m = hooks.Or(m, hooks.ArgumentEquals(path, json.RawMessage(value)))
		}
		matchers = append(matchers, m)
	}
	return hooks.And(matchers...)
}

// isPlainValue reports whether a text is a number, true, false or null in JSON.
func isPlainValue(text string) bool {
	return text != "" && !strings.ContainsAny(text[:1], `"{[`) && strings.TrimSpace(text) == text && json.Valid([]byte(text))
}

// ScopeOfCall returns the narrowest scope for the open questions about a call. Free are the arguments that no pattern can describe, so that
// the scope allows any value of them. The error says why waivers cannot answer the questions.
func ScopeOfCall(questions agent.Questions, call agent.ToolCall) (s Scope, free []string, err error) {
	open := questions.Open()
	for _, q := range open {
		if why := whyNot(q); why != "" {
			return s, nil, errors.New(why)
		}
	}
	rules := lo.Uniq(lo.Map(open, func(q agent.Question, _ int) string { return q.By }))
	if len(rules) != 1 {
		return s, nil, fmt.Errorf("a waiver is for one rule, and these ask: %s", strings.Join(rules, ", "))
	}
	s = Scope{Rule: rules[0], Tool: patternOf(call.Name), Arguments: map[string]string{}}
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		return s, nil, errors.New("its arguments are no JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		var text string
		raw, path := string(arguments[name]), escapePath.Replace(name)
		switch {
		case isPlainValue(raw) && hooks.ArgumentMatching(path, raw).Err() == nil:
			s.Arguments[path] = raw
		case json.Unmarshal(arguments[name], &text) == nil && text != "" && len(text) <= invisible.MaxReason && invisible.Escape(name+text) == name+text:
			s.Arguments[path] = patternOf(text)
		default:
			free = append(free, name)
		}
	}
	if len(arguments) > 0 && len(s.Arguments) == 0 {
		return s, free, errors.New("no pattern can describe its arguments, so a waiver would allow all of them")
	}
	return s, free, nil
}

// escapePath makes a path of one name: see hooks.Argument.
var escapePath = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`, "/", `\/`, "[", `\[`, "]", `\]`, "$", `\$`)

// patternOf returns a pattern that matches only a text: the text itself, if possible.
func patternOf(text string) string {
	if !strings.HasPrefix(text, "/") && !strings.ContainsAny(text, `\*?[]`) && hooks.ToolMatching(text).Err() == nil {
		return text
	}
	return hooks.Exact(text)
}

// EndOf returns the end of the next day with a name, in UTC. It is at least a day away.
func EndOf(day time.Weekday, now time.Time) time.Time {
	days := (int(day-now.UTC().Weekday())+6)%7 + 2
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, days)
}
