package mock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Row answers the calls that it matches.
type Row struct {
	// Name is the row's name in reports. Empty means its number and tool.
	Name string
	// Tool is the tool's name. Empty matches any tool.
	Tool string
	// Arguments must match the call's arguments. Arguments that it does not mention are ignored.
	Arguments Arguments
	// When, unless nil, must also return true. It must be safe for concurrent use.
	When func(hooks.Call) bool

	// Text is a text result, Content any other result, and Failure the error text of a failed tool. Set at most one of
	// them.
	Text    string
	Content agent.Content
	Failure string
	// Latency delays the answer.
	Latency time.Duration
	// Times is how often the row answers in one run before it is ignored. Zero means any number.
	Times int
}

// Arguments maps paths such as "city" or "to.0.email" to conditions. A condition is a value that equals the argument as
// JSON, or a *regexp.Regexp that matches somewhere in the argument's text.
type Arguments map[string]any

// Use counts a row's answers.
type Use struct {
	Row   string
	Count int
}

// Table answers calls from rows and counts its answers. Create one with NewTable. It is safe for concurrent use.
type Table struct {
	options Options
	rows    []row
	ofRun   *agent.Scratch[answered]

	mu        sync.Mutex
	uses      []int
	unmatched []agent.ToolCall
}

// answered counts each row's answers in a run.
type answered struct{ times []int }

type row struct {
	Row

	asks []ask
}

// ask is the condition on the value at a path.
type ask struct {
	path  string
	value string // the canonical form of {"": value}
	text  *regexp.Regexp
}

// NewTable returns a table of rows, which are tried in order, or an error that joins all problems of the rows.
func NewTable(o Options, rows ...Row) (*Table, error) {
	t := &Table{options: o, uses: make([]int, len(rows)), ofRun: agent.NewScratch[answered](nil)}
	var wrong []error
	for i, r := range rows {
		r.Name = cmp.Or(r.Name, fmt.Sprintf("row %d: %s", i+1, cmp.Or(r.Tool, "any tool")))
		if lo.CountBy([]bool{r.Text != "", r.Content.Len() > 0, r.Failure != ""}, func(set bool) bool { return set }) > 1 {
			wrong = append(wrong, fmt.Errorf("%s: set only one of Text, Content and Failure", r.Name))
		}
		made := row{Row: r}
		for _, path := range slices.Sorted(maps.Keys(r.Arguments)) {
			a, err := askFor(path, r.Arguments[path])
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: argument %q: %w", r.Name, path, err))
			}
			made.asks = append(made.asks, a)
		}
		t.rows = append(t.rows, made)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("creating a table of mocks: %w", err)
	}
	return t, nil
}

func askFor(path string, value any) (ask, error) {
	if re, ok := value.(*regexp.Regexp); ok {
		return ask{path: path, text: re}, nil
	}
	raw, err := strictjson.Marshal(value)
	if err != nil {
		return ask{}, err
	}
	canonical, err := canonicalValue(raw)
	return ask{path: path, value: canonical}, err
}

// canonicalValue returns a JSON value's canonical form.
func canonicalValue(raw string) (string, error) { return strictjson.Canonical(`{"":` + raw + `}`) }

func (r row) matches(c hooks.Call) bool {
	return (r.Tool == "" || r.Tool == c.Name) && lo.EveryBy(r.asks, func(a ask) bool { return a.matches(c) }) && (r.When == nil || r.When(c))
}

func (a ask) matches(c hooks.Call) bool {
	if a.text != nil {
		text, ok := c.Text(a.path)
		return ok && a.text.MatchString(text)
	}
	raw, ok := c.Argument(a.path)
	if !ok {
		return false
	}
	value, err := canonicalValue(raw)
	return err == nil && value == a.value
}

// Hook returns the control at PreToolUse that answers.
func (t *Table) Hook() hooks.Hook {
	longest := time.Duration(0)
	for _, r := range t.rows {
		longest = max(longest, r.Latency)
	}
	return t.options.newHook(t, longest, t.find, func(c hooks.ToolContext) string {
		return fmt.Sprintf("the table of mocks has no answer of %s to these arguments: %s", c.Tool(), c.Call().Arguments)
	})
}

func (t *Table) find(c hooks.ToolContext) (_ reply, undo func(), found bool) {
	ofRun := t.ofRun.Get(c.State())
	if ofRun.times == nil {
		ofRun.times = make([]int, len(t.rows))
	}
	call := c.Call()
	for i, r := range t.rows {
		if r.Times > 0 && ofRun.times[i] >= r.Times || !r.matches(call) {
			continue
		}
		t.use(ofRun, i, 1)
		undo = func() { t.use(ofRun, i, -1) }
		if r.Failure != "" {
			return reply{agent.TextContent(r.Failure), true, r.Latency}, undo, true
		}
		return reply{lo.Ternary(r.Text != "", agent.TextContent(r.Text), r.Content), false, r.Latency}, undo, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unmatched) >= 1000 { // enough to show which rows are missing
		return reply{}, func() {}, false
	}
	t.unmatched = append(t.unmatched, call.ToolCall)
	return reply{}, func() { t.match(call.ToolCall) }, false
}

// use adds to a row's uses. A negative number undoes them.
func (t *Table) use(ofRun *answered, row, times int) {
	ofRun.times[row] += times
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses[row] += times
}

// match removes a call from the unmatched calls.
func (t *Table) match(call agent.ToolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := lo.LastIndexOf(t.unmatched, call); i >= 0 {
		t.unmatched = slices.Delete(t.unmatched, i, i+1)
	}
}

// Uses returns how often each row answered, in the order of the rows, over all runs.
func (t *Table) Uses() []Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	return lo.Map(t.rows, func(r row, i int) Use { return Use{r.Name, t.uses[i]} })
}

// UnusedRows returns the names of the rows that never answered.
func (t *Table) UnusedRows() []string {
	return lo.FilterMap(t.Uses(), func(u Use, _ int) (string, bool) { return u.Row, u.Count == 0 })
}

// UnmatchedCalls returns the first thousand calls that no row answered, in the order in which they were made.
func (t *Table) UnmatchedCalls() []agent.ToolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.unmatched)
}
