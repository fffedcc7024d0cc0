package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Definition is the content of a pipeline file, except for its hooks, which package policy reads.
type Definition struct {
	// Name is the name of the pipeline. Workers find pipelines by it.
	Name        string `key:"name,required"`
	Description string `key:"description"`
	// Limits apply to a session and its iterations together.
	Limits Limits `key:"limits"`
	// Stages run in their order.
	Stages []Stage `key:"stages,required"`

	rules
}

// Limits are a session's limits. Zero means no limit.
type Limits struct {
	Steps  int           `key:"steps,positive"`
	Tokens int64         `key:"tokens,positive"`
	Cost   float64       `key:"cost,positive"` // in US dollars
	Time   time.Duration `key:"time,positive"`
}

// Stage is a part of a pipeline: an agent or a command that runs again and again.
type Stage struct {
	// Name is unique in the pipeline.
	Name        string `key:"name,required"`
	Description string `key:"description"`
	// Agent is the agent that runs in each iteration. Prompt is its input; ${NAME} in it stands for a variable.
	Agent  Agent  `key:"agent"`
	Prompt string `key:"prompt"`
	// Command, instead of Agent, is the command that runs in each iteration.
	Command *Command `key:"command"`
	// Loop, instead of both, is the name or the path of a file with these keys and hooks.
	Loop string `key:"loop"`
	// Parallel, instead of all three, are stages that run at the same time. The next stage begins when all have ended.
	Parallel []Stage `key:"parallel"`
	// Termination says after which iteration the stage is complete. Required, except with Loop and Parallel.
	Termination Termination `key:"termination"`
	// MaxIterations is the maximum number of iterations. Zero means 25. With fixed iterations it is not used.
	MaxIterations int `key:"max_iterations,positive"`
	// MaxCost, in US dollars, and MaxTime are limits for all iterations together. After that, the stage is complete. Zero means no
	// limit. Time in which the session waits for a gate does not count.
	MaxCost float64       `key:"max_cost,positive"`
	MaxTime time.Duration `key:"max_time,positive"`
	// OnFailure says what happens after a failed iteration: "abort" ends the pipeline as failed, "continue" goes on
	// with the next iteration. Empty means abort.
	OnFailure string `key:"on_failure"`

	rules

	within   string // where the pipeline file has the stage: see policy.Layer
	loopFile string // the path of Loop's file
}

// Agent is an agent's name, its definition as JSON, or the path of its file, relative to the file that names it. In a pipeline
// file, a definition is a mapping.
type Agent string //nolint:recvcheck // decoding needs a pointer

// ReadNode reads a name, a path or a definition.
func (a *Agent) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.MappingNode {
		text, err := json.MarshalIndent(n.Value(), "", "  ")
		if err != nil {
			n.Wrong("%w", err)
		}
		*a = Agent(text)
		return
	}
	text, _ := n.Text()
	*a = Agent(text)
}

// isInline reports whether the agent is given by its definition.
func (a Agent) isInline() bool { return strings.HasPrefix(string(a), "{") }

// String returns the agent's name or path.
func (a Agent) String() string {
	if a.isInline() {
		return "of the pipeline file"
	}
	return string(a)
}

// Command is a stage's command.
type Command struct {
	// Argv is the program and its arguments. No shell reads them.
	Argv []string `key:"argv,required"`
	// Dir is the working directory, relative to the session's workspace.
	Dir string `key:"dir"`
	// Env are further environment variables. Inherit names variables that it gets from the worker, besides the variables that every
	// action gets, such as PATH.
	Env     map[string]string `key:"env"`
	Inherit []string          `key:"inherit"`
	// Timeout is the maximum duration. Zero means ten minutes.
	Timeout time.Duration `key:"timeout,positive"`
	// Repeat says whether the command runs again, with the same idempotency key, when its worker ended while it ran. If it is false,
	// the iteration fails. Nil means true.
	Repeat *bool `key:"repeat"`
}

// The types of termination.
const (
	// Fixed is a fixed number of iterations.
	Fixed = "fixed"
	// Queue ends when a command or a file lists no more work. It is asked before the first iteration and after each one.
	Queue = "queue"
	// Judgment ends when the agent or the command has decided so.
	Judgment = "judgment"
)

// Termination says when a stage is complete.
type Termination struct {
	// Type is Fixed, Queue or Judgment.
	Type string `key:"type,required"`
	// Iterations, for Fixed, is their number.
	Iterations int `key:"iterations,positive"`
	// Command, for Queue, writes the remaining work to standard output. No output means that none remains.
	Command []string `key:"command"`
	// File, for Queue instead of Command, lists the remaining work. Its path is relative to the session's workspace. An empty file
	// means that none remains. A missing file is an error.
	File string `key:"file"`
	// Confirmations, for Judgment, is how many iterations in a row must decide to stop. Zero means two.
	Confirmations int `key:"confirmations,positive"`
}

// The defaults of stages.
const (
	defaultMaxIterations = 25
	defaultConfirmations = 2
)

// rules are the keys with hooks, which package policy reads and checks.
type rules struct {
	Hooks                elsewhere `key:"hooks"`
	DisableGlobalHooks   elsewhere `key:"disable_global_hooks"`
	DisablePipelineHooks elsewhere `key:"disable_pipeline_hooks"`
	Variables            elsewhere `key:"variables"`
	Environment          elsewhere `key:"environment"`
	Definitions          elsewhere `key:"definitions"`
	Defaults             elsewhere `key:"defaults"`
	Version              elsewhere `key:"version"`
}

// elsewhere is a value that package policy reads.
type elsewhere struct{}

// ReadNode reads nothing.
func (*elsewhere) ReadNode(yamlfile.Node) {}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// maxName is the maximum length of a pipeline's or a stage's name, so that both together are a valid run name.
const maxName = 100

// checkName reports an invalid name.
func checkName(what, name string, n yamlfile.Node) {
	if name != "" && (len(name) > maxName || !namePattern.MatchString(name)) {
		n.Find("name").Wrong("name: invalid name of a %s: use at most %d letters and digits, with . _ or - between them", what, maxName)
	}
}

// Check reports names that are used twice.
func (d *Definition) Check(n yamlfile.Node) {
	checkName("pipeline", d.Name, n)
	seen := map[string]bool{}
	check := func(name string, at yamlfile.Node) {
		if seen[name] && name != "" {
			at.Find("name").Wrong("name: another stage has the name %q, too: names of stages are unique", name)
		}
		seen[name] = true
	}
	for i, s := range d.Stages {
		check(s.Name, n.Find("stages", i))
		for k, below := range s.Parallel {
			check(below.Name, n.Find("stages", i, "parallel", k))
			if len(below.Parallel) > 0 {
				n.Find("stages", i, "parallel", k, "parallel").Wrong("parallel: a stage in a parallel block cannot be such a block")
			}
		}
	}
}

// Check reports contradictions between the keys of a stage.
func (s *Stage) Check(n yamlfile.Node) {
	checkName("stage", s.Name, n)
	has := func(key string) bool { return n.Find(key).Kind() != yamlfile.AbsentNode }
	var does []string
	for _, key := range []string{"agent", "command", "loop", "parallel"} {
		if has(key) {
			does = append(does, key)
		}
	}
	switch {
	case len(does) == 0:
		n.Wrong("the stage does nothing: add one of the keys agent, command, loop and parallel")
		return
	case len(does) > 1:
		n.Find(does[1]).Wrong("%s: the stage has the key %s, too: use one of them", does[1], does[0])
		return
	}
	allowed := map[string][]string{
		"agent":    {"prompt", "termination", "max_iterations", "max_cost", "max_time", "on_failure"},
		"command":  {"termination", "max_iterations", "max_time", "on_failure"},
		"loop":     {"max_iterations", "max_cost", "max_time", "on_failure"},
		"parallel": {},
	}[does[0]]
	limited := []string{"prompt", "termination", "max_iterations", "max_cost", "max_time", "on_failure"}
	if does[0] == "loop" || does[0] == "parallel" { // their hooks are in the file, or in the stages of the block
		limited = append(limited, "hooks", "disable_global_hooks", "disable_pipeline_hooks")
	}
	for _, e := range n.Entries() {
		if key := e.Key.Raw(); slices.Contains(limited, key) && !slices.Contains(allowed, key) {
			e.Key.Wrong("%s: not allowed in a stage with the key %s", key, does[0])
		}
	}
	for _, key := range []string{"prompt", "termination"} {
		if slices.Contains(allowed, key) && !has(key) {
			n.Wrong("the key %q is missing: a stage with the key %s requires it", key, does[0])
		}
	}
	if has("agent") && s.Agent == "" {
		n.Find("agent").Wrong("agent: expected a name or the path of a file")
	}
	if s.Loop == "" && has("loop") {
		n.Find("loop").Wrong("loop: expected a name or the path of a file")
	}
	if s.OnFailure != "" && !slices.Contains(failureWords, s.OnFailure) {
		n.Find("on_failure").Wrong("on_failure: %s", yamlfile.Unknown("value", s.OnFailure, failureWords))
	}
	if s.Termination.Type == Fixed && has("max_iterations") {
		n.Find("max_iterations").Wrong("max_iterations: the stage has a fixed number of iterations: remove this key")
	}
}

var failureWords = []string{"abort", "continue"}

// Check reports an empty program.
func (c *Command) Check(n yamlfile.Node) {
	if len(c.Argv) > 0 && c.Argv[0] == "" {
		n.Find("argv").Wrong("argv: name a program, such as [make, test]")
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			n.Find("env").Wrong("env: %q is not a valid variable name", name)
		}
	}
	for _, pattern := range c.Inherit {
		if _, err := filepath.Match(pattern, ""); err != nil {
			n.Find("inherit").Wrong("inherit: %q: %w", pattern, err)
		}
	}
}

// terminationKeys lists the keys for each type of termination. It has one of them, or none unless the key is required.
var terminationKeys = map[string]struct {
	keys     []string
	required bool
}{Fixed: {[]string{"iterations"}, true}, Queue: {[]string{"command", "file"}, true}, Judgment: {[]string{"confirmations"}, false}}

// Check reports keys that do not belong to the type.
func (t *Termination) Check(n yamlfile.Node) {
	if t.Type == "" {
		return
	}
	own, known := terminationKeys[t.Type]
	if !known {
		n.Find("type").Wrong("type: %s", yamlfile.Unknown("termination", t.Type, []string{Fixed, Queue, Judgment}))
		return
	}
	for _, e := range n.Entries() {
		if key := e.Key.Raw(); key != "type" && !slices.Contains(own.keys, key) {
			e.Key.Wrong("%s: not allowed in a termination of type %s", key, t.Type)
		}
	}
	given := lo.Filter(own.keys, func(key string, _ int) bool { return n.Find(key).Kind() != yamlfile.AbsentNode })
	switch {
	case len(given) == 0 && own.required:
		n.Wrong("the key \"%s\" is missing: a termination of type %s requires it", strings.Join(own.keys, `" or "`), t.Type)
	case len(given) > 1:
		n.Find(given[1]).Wrong("%s: the termination has the key %s, too: use one of them", given[1], given[0])
	case t.Type == Queue && t.File == "" && (len(t.Command) == 0 || t.Command[0] == ""):
		n.Find(given[0]).Wrong("%s: name a program, such as [./todo, list], or a file", given[0])
	}
}

// maximum returns the maximum number of iterations of the stage.
func (s *Stage) maximum() int {
	if len(s.Parallel) > 0 {
		return 0
	}
	if s.Termination.Type == Fixed {
		return s.Termination.Iterations
	}
	return cmp.Or(s.MaxIterations, defaultMaxIterations)
}

// Ends says in a few words when the stage is complete.
func (s *Stage) Ends() string {
	var text string
	switch s.Termination.Type {
	case "":
		return "when all of its stages have ended"
	case Fixed:
		text = quantity(s.Termination.Iterations, "iteration")
	case Queue:
		text = fmt.Sprintf("until %s lists nothing, at most %s", s.Termination.queue(), quantity(s.maximum(), "iteration"))
	default:
		text = "until it decides to stop"
		if n := cmp.Or(s.Termination.Confirmations, defaultConfirmations); n > 1 {
			text += fmt.Sprintf(" in %d iterations in a row", n)
		}
		text += ", at most " + quantity(s.maximum(), "iteration")
	}
	if s.MaxCost > 0 {
		text += fmt.Sprintf(", at most $%.2f", s.MaxCost)
	}
	if s.MaxTime > 0 {
		text += ", at most " + s.MaxTime.String()
	}
	return text
}

// quantity returns a number with a noun.
func quantity(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// queue returns the program or the file that lists a queue's work.
func (t *Termination) queue() string {
	if t.File != "" {
		return t.File
	}
	return t.Command[0]
}

// isPath reports whether a text in a file is another file's path, not its name.
func isPath(text string) bool {
	return strings.ContainsAny(text, `/\\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(text)))
}

// find returns a stage's index by its name.
func (d *Definition) find(stage string) (int, error) {
	i := slices.IndexFunc(d.Stages, func(s Stage) bool { return s.Name == stage })
	if i < 0 {
		return i, fmt.Errorf("pipeline %q has no stage %q", d.Name, stage)
	}
	return i, nil
}

// each returns all stages. The stages in a parallel block follow the block.
func (d *Definition) each() (all []*Stage) {
	for i := range d.Stages {
		s := &d.Stages[i]
		all = append(all, s)
		for k := range s.Parallel {
			all = append(all, &s.Parallel[k])
		}
	}
	return all
}

// locate records where the file has each stage.
func (d *Definition) locate() {
	for i := range d.Stages {
		s := &d.Stages[i]
		s.within = fmt.Sprintf("stages/%d", i)
		for k := range s.Parallel {
			s.Parallel[k].within = fmt.Sprintf("stages/%d/parallel/%d", i, k)
		}
	}
}

// mergeLoop takes over the keys of a loop from its file; the stage's own limits win.
func (s *Stage) mergeLoop(loop Stage, path string) {
	s.Agent, s.Prompt, s.Command, s.Termination, s.loopFile = loop.Agent, loop.Prompt, loop.Command, loop.Termination, path
	s.MaxIterations, s.OnFailure = cmp.Or(s.MaxIterations, loop.MaxIterations), cmp.Or(s.OnFailure, loop.OnFailure)
	s.MaxCost, s.MaxTime = cmp.Or(s.MaxCost, loop.MaxCost), cmp.Or(s.MaxTime, loop.MaxTime)
}
