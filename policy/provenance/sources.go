package provenance

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Sources say whom to believe: which fields of a tool's answers are kept by the operator or the service itself, so that
// no stranger can write into them, and which carry text that anyone may have written. A field that no Source names is
// free text of strangers. The zero Sources trust no tool.
type Sources struct {
	// Tools are tried in order; all that match a tool hold for it.
	Tools []Source `json:"tools,omitempty" key:"tools"`
	// Messages say the same of messages that hooks, tools ("tool:NAME") and middleware add to the transcript, by their
	// Source (agent.Message.Source), as globs: "trusted", "known" or "untrusted". Those that are not listed are untrusted. In a
	// run that another run started, no message is a user's: what stands there as one's words is what the other run's model
	// wrote, and has the source Parent.
	Messages map[string]Level `json:"messages,omitempty" key:"messages"`
}

// Source is what is known of some tools' answers.
type Source struct {
	// Tools are names of tools; "*" stands for any text.
	Tools []string `json:"tools" key:"tools"`
	// Trusted are fields whose values are facts: contacts, accounts, ids, one's own calendar. A path like "sender" or
	// "shared_with.email" names the field and everything below it; lists are looked through; "*" stands for one name.
	// "." is the whole answer: of plain text, each line by itself. Names are compared without regard to case.
	//
	// A trusted field vouches for short single values alone: what is longer than 120 bytes or has more than one
	// line was not meant to be one, and is text of strangers.
	Trusted []string `json:"trusted,omitempty" key:"trusted"`
	// Known are fields written by people who had to sign in: colleagues, members of a workspace. They may point to
	// things; they are not the operator.
	Known []string `json:"known,omitempty" key:"known"`
	// Confidential are fields whose values should not leave without the user having said so: see Trail.Confidential.
	Confidential []string `json:"confidential,omitempty" key:"confidential"`
	// Reads says that the tools change nothing. What is given to a tool that may change something, and is not trusted at
	// that time, stays untrusted when a trusted field shows it later: the agent wrote it there itself.
	Reads bool `json:"reads,omitempty" key:"reads"`
}

// Level says who brought a value into a run. The zero Level is Nowhere.
type Level string

// The levels, from the most trusted to the least.
const (
	FromSystem  Level = "system"    // the operator: the system text, and messages of hooks that are trusted
	FromUser    Level = "user"      // the user's own words
	FromTrusted Level = "trusted"   // a trusted field of a tool's answer
	FromKnown   Level = "known"     // text of people who had to sign in
	FromOthers  Level = "untrusted" // text of anyone
	Nowhere     Level = ""          // not seen before: the model made it up
)

// With returns s with more sources behind those that it has. Of messages, those of more count where both have the same glob.
func (s Sources) With(more Sources) Sources {
	sum := Sources{Tools: append(slices.Clip(s.Tools), more.Tools...), Messages: maps.Clone(s.Messages)}
	if sum.Messages == nil {
		sum.Messages = map[string]Level{}
	}
	maps.Copy(sum.Messages, more.Messages)
	return sum
}

// atLeast reports whether a level is trusted as much as another, or more. Nowhere is the least.
func (l Level) atLeast(other Level) bool { return trust[l] >= trust[other] }

var trust = map[Level]int{FromSystem: 5, FromUser: 4, FromTrusted: 3, FromKnown: 2, FromOthers: 1}

// Parent is the source, in Sources.Messages, of what a run is told by the run that started it.
const Parent = "parent"

// maxValue is how long the value of a trusted field may be, in bytes.
const maxValue = 120

// Validate names everything that is wrong with s; nil when nothing is.
func (s Sources) Validate() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for i, source := range s.Tools {
		if len(source.Tools) == 0 {
			say("source %d: names no tools", i+1)
		}
		for _, glob := range source.Tools {
			if _, err := path.Match(glob, ""); err != nil || glob == "" {
				say("source %d: tool %q is no name and no glob", i+1, glob)
			}
		}
		for _, field := range append(append(append([]string{}, source.Trusted...), source.Known...), source.Confidential...) {
			if field == "" || field != "." && (strings.HasPrefix(field, ".") || strings.HasSuffix(field, ".") || strings.Contains(field, "..")) {
				say("source %d: field %q is no path: write names with dots between them, or \".\" for the whole answer", i+1, field)
			}
		}
	}
	for name, level := range s.Messages {
		if _, err := path.Match(name, ""); err != nil {
			say("messages %q: is no name and no glob", name)
		}
		if level != FromTrusted && level != FromKnown && level != FromOthers {
			say("messages %q: level %q is none of trusted, known, untrusted", name, level)
		}
	}
	return errors.Join(wrong...)
}

// toolRules is what Sources say of one tool.
type toolRules struct {
	trusted, known, confidential [][]string
	reads                        bool
}

func (r *toolRules) structured() bool {
	return len(r.trusted)+len(r.known)+len(r.confidential) > 0
}

// rulesFor collects what holds for a tool.
func (s Sources) rulesFor(tool string) *toolRules {
	rules := &toolRules{}
	for _, source := range s.Tools {
		if !matchesAny(source.Tools, tool) {
			continue
		}
		rules.trusted = append(rules.trusted, splitPaths(source.Trusted)...)
		rules.known = append(rules.known, splitPaths(source.Known)...)
		rules.confidential = append(rules.confidential, splitPaths(source.Confidential)...)
		rules.reads = rules.reads || source.Reads
	}
	return rules
}

// message returns the level of messages with this source.
func (s Sources) message(source string) Level {
	level := FromOthers
	found := ""
	for glob, l := range s.Messages {
		// Of several globs that match, the longest is the most particular.
		if ok, _ := path.Match(glob, source); ok && (found == "" || len(glob) > len(found)) {
			found, level = glob, l
		}
	}
	return level
}

func matchesAny(globs []string, name string) bool {
	for _, glob := range globs {
		if ok, _ := path.Match(glob, name); ok {
			return true
		}
	}
	return false
}

func splitPaths(fields []string) [][]string {
	out := make([][]string, 0, len(fields))
	for _, field := range fields {
		if field == "." {
			out = append(out, []string{})
			continue
		}
		out = append(out, strings.Split(strings.ToLower(field), "."))
	}
	return out
}

// coversField reports whether a pattern names the field or something above it.
func coversField(patterns [][]string, field []string) bool {
next:
	for _, pattern := range patterns {
		if len(pattern) > len(field) {
			continue
		}
		for i, name := range pattern {
			if name != "*" && name != field[i] {
				continue next
			}
		}
		return true
	}
	return false
}
