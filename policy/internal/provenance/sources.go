package provenance

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/policy/tools"
)

// Sources lists the fields in tools' answers to trust, because the operator or the service itself maintains them and
// no stranger can write to them. A field that no Source names counts as strangers' text. The zero Sources trusts no
// tool.
type Sources struct {
	// Tools lists the rules for tools. All rules that match a tool apply.
	Tools []Source `json:"tools,omitempty" key:"tools"`
	// Messages sets the level of messages that hooks, tools ("tool:NAME") and middleware add to the transcript:
	// "trusted", "known" or "untrusted", by globs for their Source (agent.Message.Source). Other messages are
	// untrusted. In a run that another run started, no message is the user's: the other run's model wrote the input,
	// which has the source Parent.
	Messages map[string]Level `json:"messages,omitempty" key:"messages"`
}

// Source holds the rules for some tools' answers.
type Source struct {
	// Tools lists tool names; "*" stands for any text.
	Tools []string `json:"tools,omitempty" key:"tools"`
	// Records lists kinds of records that the tools return, instead of tool names: see tools.Records.
	Records []tools.Records `json:"records,omitempty" key:"records"`
	// Trusted lists fields whose values are facts: contacts, accounts, IDs, the user's own calendar. A path like "sender"
	// or "shared_with.email" names the field and everything below it, also in lists; "*" stands for one name. "." is
	// the whole answer, and in plain text each line by itself. Names are compared ignoring case.
	//
	// A trusted field is trusted for short single values only: a value of more than 120 bytes or more than one line
	// counts as strangers' text.
	Trusted []string `json:"trusted,omitempty" key:"trusted"`
	// Known lists fields written by people who had to sign in: colleagues, members of a workspace. They may point to
	// things; they are not the operator.
	Known []string `json:"known,omitempty" key:"known"`
	// Authors lists fields with the mail address of the record's author, which the service has checked. A user who
	// calls this person by name points to the record's link: see Trail.Linked.
	Authors []string `json:"authors,omitempty" key:"authors"`
	// Untrusted lists fields that anyone may write, at any depth, even below a field in Trusted or Known: reviews in
	// a directory.
	Untrusted []string `json:"untrusted,omitempty" key:"untrusted"`
	// Confidential lists fields whose values should not leave unless the user said so: see Trail.Confidential.
	Confidential []string `json:"confidential,omitempty" key:"confidential"`
	// Reads declares that the tools change nothing. An untrusted value that is given to any other tool stays
	// untrusted when a trusted field shows it later, because the agent wrote it there itself.
	Reads bool `json:"reads,omitempty" key:"reads"`
}

// Level is the trust level of a value's author. The zero Level is Nowhere.
type Level string

// The levels, from most to least trusted.
const (
	FromSystem  Level = "system"    // the operator: the system text, and trusted hook messages
	FromUser    Level = "user"      // the user's own words
	FromTrusted Level = "trusted"   // a trusted field in a tool's answer
	FromKnown   Level = "known"     // text from people who had to sign in
	FromOthers  Level = "untrusted" // anyone's text
	Nowhere     Level = ""          // not seen before: the model made it up
)

// With returns s followed by more sources. If both have the same glob in Messages, more wins.
func (s Sources) With(more Sources) Sources {
	sum := Sources{Tools: append(slices.Clip(s.Tools), more.Tools...), Messages: maps.Clone(s.Messages)}
	if sum.Messages == nil {
		sum.Messages = map[string]Level{}
	}
	maps.Copy(sum.Messages, more.Messages)
	return sum
}

// atLeast reports whether a level is at least as trusted as another. Nowhere is the least trusted.
func (l Level) atLeast(other Level) bool { return trust[l] >= trust[other] }

var trust = map[Level]int{FromSystem: 5, FromUser: 4, FromTrusted: 3, FromKnown: 2, FromOthers: 1}

// Parent is the Source, in Sources.Messages, of the input that a run receives from its parent run.
const Parent = "parent"

// maxValue is the maximum length of a trusted value, in bytes.
const maxValue = 120

// Validate returns an error that joins all problems in s, or nil.
func (s Sources) Validate() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for i, source := range s.Tools {
		if len(source.Tools)+len(source.Records) == 0 {
			say("source %d: tools are missing", i+1)
		}
		for _, r := range source.Records {
			if !slices.Contains(tools.AllRecords(), r) {
				say("source %d: unknown records %q: expected one of %v", i+1, r, tools.AllRecords())
			}
		}
		for _, glob := range source.Tools {
			if _, err := path.Match(glob, ""); err != nil || glob == "" {
				say("source %d: tool %q is not a valid name or glob", i+1, glob)
			}
		}
		for _, field := range slices.Concat(source.Trusted, source.Known, source.Untrusted, source.Confidential, source.Authors) {
			if field == "" || field != "." && (strings.HasPrefix(field, ".") || strings.HasSuffix(field, ".") || strings.Contains(field, "..")) {
				say("source %d: field %q is not a valid path: write names with dots between them, or \".\" for the whole answer", i+1, field)
			}
		}
	}
	for name, level := range s.Messages {
		if _, err := path.Match(name, ""); err != nil {
			say("messages %q: not a valid name or glob", name)
		}
		if level != FromTrusted && level != FromKnown && level != FromOthers {
			say("messages %q: unknown level %q: expected trusted, known or untrusted", name, level)
		}
	}
	return errors.Join(wrong...)
}

// toolRules holds the rules from all Sources for one tool.
type toolRules struct {
	trusted, known, authors, untrusted, confidential [][]string
	reads                                            bool
}

func (r *toolRules) structured() bool {
	return len(r.trusted)+len(r.known)+len(r.confidential) > 0
}

// rulesFor collects a tool's rules.
func (s Sources) rulesFor(d *tools.Description) *toolRules {
	rules := &toolRules{reads: d.OnlyReads()}
	for _, source := range s.Tools {
		if !matchesAny(source.Tools, d.Tool) && !slices.ContainsFunc(source.Records, d.Returns) {
			continue
		}
		rules.trusted = append(rules.trusted, splitPaths(source.Trusted)...)
		rules.known = append(rules.known, splitPaths(source.Known)...)
		rules.authors = append(rules.authors, splitPaths(source.Authors)...)
		rules.untrusted = append(rules.untrusted, splitPaths(source.Untrusted)...)
		rules.confidential = append(rules.confidential, splitPaths(source.Confidential)...)
		rules.reads = rules.reads || source.Reads
	}
	return rules
}

// message returns the level of messages with the given Source.
func (s Sources) message(source string) Level {
	level := FromOthers
	found := ""
	for glob, l := range s.Messages {
		// If several globs match, the longest wins.
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

// coversField reports whether a pattern names the field or a field above it.
func coversField(patterns [][]string, field []string) bool {
next:
	for _, pattern := range patterns {
		if len(pattern) > len(field) {
			continue
		}
		for i, name := range pattern {
			if name != field[i] && (!strings.HasPrefix(name, "*") || !strings.HasSuffix(field[i], name[1:])) {
				continue next
			}
		}
		return true
	}
	return false
}
