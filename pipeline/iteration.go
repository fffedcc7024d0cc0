package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/process"
	"github.com/grapnel-go/grapnel/internal/rooted"
)

// The decisions of an iteration.
const (
	decisionContinue = "continue"
	decisionStop     = "stop"
)

// commandInput is a command run's input, which the command reads from its standard input.
type commandInput struct {
	// Variables are the iteration's variables, which are in the environment, too.
	Variables map[string]string `json:"variables"`
	// Context is text from hooks, Inputs the session's inputs.
	Context []string        `json:"context,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitzero"`
}

// iterationJob returns the current iteration's job.
func (m *machine) iterationJob() (durable.Job, error) {
	stage, variables := m.stage(), m.variables(nil)
	var job durable.Job
	var err error
	if stage.Command != nil {
		job.Kind = durable.KindCommand
		job.Input, err = json.Marshal(commandInput{variables, m.at.Context, m.inputs})
	} else {
		named := m.inputTexts()
		maps.Copy(named, m.outputTexts(stage.Prompt))
		maps.Copy(named, variables)
		text := expand(stage.Prompt, named)
		input := []agent.Message{agent.UserText(text)}
		for _, more := range m.at.Context {
			input = append(input, agent.UserText(more).WithSource("hook"))
		}
		job, err = durable.AgentJob("", agent.NewState(), input...)
	}
	if err != nil {
		return job, fmt.Errorf("iteration %d of stage %q: %w", m.at.Iteration, stage.Name, err)
	}
	job.ID, job.Name, job.Version = agent.NewRunID(), m.Name+"/"+stage.Name, m.about.Version
	job.Session, job.Parent, job.Root = m.about.Session, m.about.ID, m.about.Root
	job.By, job.Demands, job.Priority, job.Limits = m.about.By, m.about.Demands, m.about.Priority, m.limitsLeft()
	if job.Kind == durable.KindCommand {
		job.Limits = agent.Limits{Time: job.Limits.Time}
	}
	job.Labels = map[string]string{
		LabelPipeline: m.Name, LabelSession: m.name, durable.LabelStage: stage.Name, durable.LabelIteration: strconv.Itoa(m.at.Iteration),
	}
	if m.at.Restarts > 0 {
		job.Labels[labelRestarts] = strconv.Itoa(m.at.Restarts)
	}
	return job, nil
}

var variablePattern = regexp.MustCompile(`\$\{([A-Z_]+|(?:inputs|outputs)\.[A-Za-z0-9._-]+)\}`)

// expand replaces ${NAME} by a variable's value. Unknown names stay.
func expand(text string, variables map[string]string) string {
	return variablePattern.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := variables[name[2:len(name)-1]]; ok {
			return value
		}
		return name
	})
}

// outputTexts returns the last outputs of the stages that a prompt names as outputs.NAME.
func (m *machine) outputTexts(prompt string) map[string]string {
	texts := map[string]string{}
	for _, stage := range outputNames(prompt) {
		texts["outputs."+stage] = strings.TrimSpace(m.lastOutputOf(stage))
	}
	return texts
}

// outputNames returns the stages whose outputs a prompt names.
func outputNames(prompt string) (names []string) {
	for _, name := range valueNames(prompt) {
		if stage, ok := strings.CutPrefix(name, "outputs."); ok {
			names = append(names, stage)
		}
	}
	return names
}

// valueNames returns the inputs and outputs that a text names, as inputs.NAME and outputs.STAGE.
func valueNames(text string) (names []string) {
	for _, match := range variablePattern.FindAllStringSubmatch(text, -1) {
		if strings.Contains(match[1], ".") {
			names = append(names, match[1])
		}
	}
	return names
}

// lastOutputOf returns a stage's last output, at most maxResult bytes; empty if there is none.
func (s *session) lastOutputOf(stage string) string {
	dir := s.newestIterations(s.outputDirs[stage])
	iterations, _ := s.base.ReadDir(dir) // sorted by their names, which have four digits or more
	slices.SortStableFunc(iterations, func(a, b fs.DirEntry) int { return len(a.Name()) - len(b.Name()) })
	for _, iteration := range slices.Backward(iterations) {
		text, err := s.base.ReadFile(filepath.Join(dir, iteration.Name(), outputFile), maxResult)
		if _, large := errors.AsType[*rooted.TooLargeError](err); err == nil || large {
			return strings.ToValidUTF8(string(text), "\uFFFD")
		}
	}
	return ""
}

// newestIterations returns the directory with a stage's iterations since the stage last began.
func (s *session) newestIterations(stage string) string {
	dir := filepath.Join(stage, iterationsDir)
	for again := 2; ; again++ {
		next := filepath.Join(stage, fmt.Sprintf("%s-%d", iterationsDir, again))
		if _, err := s.base.Lstat(next); err != nil {
			return dir
		}
		dir = next
	}
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }

// outcome is how an iteration has ended.
type outcome struct {
	output  string
	failure *string // nil for a successful iteration
	// decision is empty when there is none.
	decision, why string
	spent         spending
}

// outcomeOf returns the current iteration's outcome.
func (m *machine) outcomeOf(ctx context.Context, child durable.Run) (o outcome, err error) {
	result, err := durable.ResultOf(ctx, m.store, child.ID)
	if err != nil {
		return o, err
	}
	o.output = outputText(result)
	if child.Kind == durable.KindAgent {
		s, err := durable.Load(ctx, m.store, child.ID)
		switch {
		case err == nil:
			o.spent = spendingOf(s.Spending())
			o.decision, o.why = lastDecision(s)
		case !errors.Is(err, durable.ErrNotBegun):
			return o, err
		}
	}
	if child.Status != durable.StatusCompleted {
		failure := cmp.Or(result.Error, fmt.Sprintf("the run ended as %s: %s", child.Status, child.Reason))
		o.failure, o.decision, o.why = &failure, "", ""
		return o, nil
	}
	if child.Kind == durable.KindCommand {
		if o.decision, o.why, err = m.readDecision(m.file(m.at, decisionFile)); err != nil {
			o.failure, err = new(err.Error()), nil
		}
	}
	return o, err
}

func spendingOf(s agent.Spending) spending {
	return spending{s.Steps, s.Usage.Tokens(), s.Usage.Cost.OrEmpty()}
}

// maxDecision is the maximum size of a file with a decision.
const maxDecision = 64 << 10

// readDecision reads the decision that a command has written. Without a file, it has decided nothing.
func (s *session) readDecision(path string) (decision, why string, err error) {
	text, err := s.base.ReadFile(path, maxDecision)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	var written struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(text), &written)
	}
	if err == nil && written.Decision != decisionContinue && written.Decision != decisionStop {
		err = fmt.Errorf("unknown decision %q: expected continue or stop", written.Decision)
	}
	if err != nil {
		return "", "", fmt.Errorf("reading the decision in %s: %w", path, err)
	}
	return written.Decision, written.Reason, nil
}

// workLeft reports whether the stage's queue has work left. It asks once after each iteration, and journals the answer.
func (m *machine) workLeft(ctx context.Context, iteration int) (bool, error) {
	name := fmt.Sprintf("queue of stage %q after iteration %d", m.stage().Name, iteration)
	if m.at.Round > 0 {
		name += fmt.Sprintf(", round %d", m.at.Round)
	}
	data, err := m.journal.Once(ctx, agent.State{}, name, true, func(ctx context.Context, _ string) ([]byte, error) {
		left, err := m.listQueue(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var result queueResult
		if result.Left = left; err != nil {
			result.Error = err.Error()
		}
		return json.Marshal(result)
	})
	if err != nil {
		return false, err
	}
	var result queueResult
	if err = json.Unmarshal(data, &result); err == nil && result.Error != "" {
		err = fmt.Errorf("the queue of stage %q: %s", m.stage().Name, result.Error)
	}
	if err != nil {
		return false, &brokenError{err}
	}
	return result.Left, nil
}

// queueResult is the recorded result of asking a queue.
type queueResult struct {
	Left  bool   `json:"left"`
	Error string `json:"error,omitempty"`
}

// queueTimeout is the maximum duration of a queue's command.
const queueTimeout = 5 * time.Minute

// listQueue reports whether the queue's file or the output of its command is not blank.
func (m *machine) listQueue(ctx context.Context) (left bool, err error) {
	if name := m.stage().Termination.File; name != "" {
		return listsWork(name, m.workspace)
	}
	argv := m.stage().Termination.Command
	path, err := lookUp(m.workspace, argv[0])
	if err != nil {
		return false, err
	}
	var stdout, stderr limitedBuffer
	done, err := process.Run(ctx, process.Command{
		Path: path, Args: argv, Dir: m.workspace, Env: asList(environment(nil, nil, m.variables(nil))),
		Stdout: &stdout, Stderr: &stderr, Timeout: queueTimeout, Grace: 2 * time.Second,
	})
	switch {
	case err != nil:
		return false, err
	case done.Ended == process.TimedOut:
		return false, fmt.Errorf("%s ran longer than %s", argv[0], queueTimeout)
	case done.Ended != process.Exited || done.Signal != "":
		return false, fmt.Errorf("%s was ended: %s", argv[0], cmp.Or(done.Signal, string(done.Ended)))
	case done.ExitCode() != 0:
		return false, fmt.Errorf("%s ended with exit code %d: %s", argv[0], done.ExitCode(), stderr.text())
	}
	return stdout.text() != "", nil
}

// listsWork reports whether a file has anything but white space.
func listsWork(name, dir string) (left bool, err error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe would not end
		return false, fmt.Errorf("%s is no regular file", name)
	}
	for buffer := make([]byte, 32<<10); ; {
		n, err := file.Read(buffer)
		switch {
		case len(bytes.TrimSpace(buffer[:n])) > 0:
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct{ kept []byte }

// Write never fails.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 4 << 10
	n := len(p)
	if len(b.kept) == 0 { // white space at the beginning must not hide what follows
		p = bytes.TrimLeft(p, " \t\r\n\v\f")
	}
	b.kept = append(b.kept, p[:min(len(p), most-len(b.kept))]...)
	return n, nil
}

func (b *limitedBuffer) text() string {
	return strings.ToValidUTF8(string(bytes.TrimSpace(b.kept)), "\uFFFD")
}

// lookUp returns a program's path. A name with a slash is relative to dir.
func lookUp(dir, name string) (string, error) {
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return exec.LookPath(name)
}

// environment returns a program's environment: the variables that every action inherits, further inherited names, own variables,
// and last the iteration's variables.
func environment(inherit []string, own, variables map[string]string) map[string]string {
	all := map[string]string{}
	patterns := append(action.DefaultInherit(), inherit...)
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok }) {
			all[name] = value
		}
	}
	maps.Copy(all, own)
	maps.Copy(all, variables)
	return all
}

// asList returns an environment as a list, sorted by name.
func asList(environment map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		all = append(all, name+"="+environment[name])
	}
	return all
}
