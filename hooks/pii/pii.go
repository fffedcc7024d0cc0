package pii

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/internal/scrub"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/lazy"
)

// Options configures a Filter: which kinds it finds and how it treats findings. The zero value finds all known kinds
// and redacts them.
type Options struct {
	// Kinds lists the built-in kinds to find. Empty means all: see the func Kinds. Detectors are always used.
	Kinds []string
	// Detectors holds your own detectors.
	Detectors []Detector
	// Strategy says how to treat findings. Empty means Redact. Strategies overrides it by kind.
	Strategy   Strategy
	Strategies map[string]Strategy
	// Key is the key for hashes, with 16 bytes or more. Hash requires it.
	Key []byte
	// Except lists values to leave unchanged, in any format, such as your own support's address.
	Except []string
	// Told, unless nil, is called for each result, input or reply in which something was found. It must be quick and safe
	// for concurrent use.
	Told func(ctx context.Context, r Report)
}

// A Detector finds an additional kind of personal data.
type Detector struct {
	// Kind is the kind's name: a word with letters, digits and underscores.
	Kind string
	// Regexp is in RE2 syntax. If it has groups, the first group that matched is the finding. Otherwise the whole match
	// is.
	Regexp string
	// Valid, unless nil, reports whether a match is a finding. It must be safe for concurrent use.
	Valid func(value string) bool
}

// Report describes the findings in one text.
type Report struct {
	Run agent.Run
	// Point is the hook's point. Tool and CallID identify a result's call. Both are empty otherwise.
	Point  hooks.PointName
	Tool   string
	CallID string
	// Counts is how often each kind was found. Blocked reports whether a finding blocked the text.
	Counts  Counts
	Blocked bool
}

// Counts is how often each kind was found. It is empty, not nil, when nothing was found.
type Counts map[string]int

// Filter finds and removes personal data. Create one with New.
type Filter struct {
	finder     *finder
	own        bool // Options.Detectors is set
	strategy   Strategy
	strategies map[string]Strategy
	key        []byte
	except     map[string]bool // by normalised value
	told       func(context.Context, Report)
}

// New returns a filter, or an error that joins all problems of the options.
func New(o Options) (*Filter, error) {
	f := &Filter{
		strategy: lo.CoalesceOrEmpty(o.Strategy, Redact), strategies: maps.Clone(o.Strategies), key: slices.Clone(o.Key),
		told: o.Told, own: len(o.Detectors) > 0, except: map[string]bool{},
	}
	var (
		detectors []detector
		wrong     []error
	)
	for _, own := range o.Detectors {
		d, err := own.detector()
		wrong = append(wrong, err)
		detectors = append(detectors, d)
	}
	for _, kind := range o.Kinds {
		if !slices.Contains(Kinds(), kind) {
			wrong = append(wrong, fmt.Errorf("unknown kind %q: expected one of %s", kind, strings.Join(Kinds(), ", ")))
		}
	}
	detectors = append(detectors, lo.Filter(known, func(d detector, _ int) bool { return len(o.Kinds) == 0 || slices.Contains(o.Kinds, d.kind) })...)
	for _, kind := range slices.Sorted(maps.Keys(o.Strategies)) {
		if !lo.SomeBy(detectors, func(d detector) bool { return d.kind == kind }) {
			wrong = append(wrong, fmt.Errorf("a strategy is set for %q, which is not among the kinds to find", kind))
		}
	}
	for _, strategy := range append([]Strategy{f.strategy}, lo.Values(o.Strategies)...) {
		switch {
		case !slices.Contains([]Strategy{Redact, Mask, Hash, Block}, strategy):
			wrong = append(wrong, fmt.Errorf("unknown strategy %q: expected %s, %s, %s or %s", strategy, Redact, Mask, Hash, Block))
		case strategy == Hash && len(o.Key) < 16:
			wrong = append(wrong, errors.New("hashes need a key of 16 bytes or more: otherwise readers of a hash can try all values"))
		}
	}
	for _, value := range o.Except {
		for i := range detectors {
			f.except[detectors[i].normal(value)] = true
		}
	}
	f.finder = newFinder(detectors)
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("creating a filter of personal data: %w", err)
	}
	return f, nil
}

var kindName = lazy.Regexp(`^\w+$`)

func (own Detector) detector() (detector, error) {
	if !kindName().MatchString(own.Kind) || slices.Contains(Kinds(), own.Kind) {
		return detector{}, fmt.Errorf("detector %q: the kind must be a new word of letters, digits and underscores", own.Kind)
	}
	re, err := regexp.Compile(own.Regexp)
	switch {
	case err != nil:
		return detector{}, fmt.Errorf("detector %q: %w", own.Kind, err)
	case re.MatchString(""):
		return detector{}, fmt.Errorf("detector %q: the pattern matches the empty text: require at least one character", own.Kind)
	}
	return detector{kind: own.Kind, re: re, valid: own.Valid, same: func(value string) string { return value }}, nil
}

// Text returns the text without personal data, and the findings. Data with the strategy Block is redacted.
func (f *Filter) Text(text string) (string, Counts) {
	counts := Counts{}
	return f.walker(counts).String(text), counts
}

// Content returns the content without personal data, and the findings. Images stay unchanged.
func (f *Filter) Content(content agent.Content) (agent.Content, Counts) {
	counts := Counts{}
	return f.walker(counts).Content(content), counts
}

func (f *Filter) walker(counts Counts) scrub.Walker {
	behind := func(name, value string) string {
		prefix := name + ": "
		return f.replace(prefix+value, len(prefix), counts)
	}
	return scrub.Walker{
		Text:   func(text string) string { return f.replace(text, 0, counts) },
		Member: func(name, _, after string) string { return behind(name, after) },
		Number: behind,
	}
}

// replace returns the text from byte from on, without personal data, even if non-printing characters split it.
func (f *Filter) replace(text string, from int, counts Counts) string {
	text = f.replaceOverBreaks(text, from, counts)
	text = invisible.Replace(text, func(visible invisible.Text) []invisible.Match { return f.findSplit(visible, from, counts) })
	return f.replaceVisible(text, from, counts)
}

// findSplit returns the personal data in a visible text that begins at byte from of the original or later, except for
// the kinds in without.
func (f *Filter) findSplit(visible invisible.Text, from int, counts Counts, without ...string) []invisible.Match {
	var split []invisible.Match
	for _, p := range f.finder.find(visible.Visible, func(p found) bool { return f.except[p.of.normal(visible.Visible[p.from:p.to])] }) {
		if start, _ := visible.Span(p.from, p.to); start < from || slices.Contains(without, p.of.kind) {
			continue
		}
		split = append(split, invisible.Match{From: p.from, To: p.to, Start: p.from, End: p.to, With: func() string {
			for _, kind := range p.uniqueKinds() {
				counts[kind]++
			}
			return f.instead(p, visible.Visible[p.from:p.to])
		}})
	}
	return split
}

// replaceVisible works like replace, and reads the text unchanged.
func (f *Filter) replaceVisible(text string, from int, counts Counts) string {
	var b strings.Builder
	end := from
	passOver := func(p found) bool {
		return p.from < from || len(f.except) > 0 && f.except[p.of.normal(text[p.from:p.to])]
	}
	for _, p := range f.finder.find(text, passOver) {
		for _, kind := range p.uniqueKinds() {
			counts[kind]++
		}
		b.WriteString(text[end:p.from])
		b.WriteString(f.instead(p, text[p.from:p.to]))
		end = p.to
	}
	if end == from {
		return text[from:]
	}
	return b.String() + text[end:]
}

// strategyOf returns the strategy for a kind.
func (f *Filter) strategyOf(kind string) Strategy {
	if s, ok := f.strategies[kind]; ok {
		return s
	}
	return f.strategy
}

// blockedKinds returns the found kinds that block the text.
func (f *Filter) blockedKinds(counts Counts) []string {
	return slices.Sorted(maps.Keys(lo.PickBy(counts, func(kind string, _ int) bool { return f.strategyOf(kind) == Block })))
}
