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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/rooted"
	"github.com/grapnel-go/grapnel/internal/worktree"
)

// sessionFiles writes a session's files. All but the progress files can be restored from the store.
type sessionFiles struct {
	projected int64 // the number of the last event in the file; -1 until it is known
}

// begin writes a session's first status. It moves the files that a deleted session left in the same directory to the folder
// previous, because they would count as this session's files. A stage in a parallel block that begins again keeps its progress
// file.
func (f *sessionFiles) begin(s *session, status Status) error {
	if err := s.base.MkdirAll(s.dir); err != nil {
		return err
	}
	var before Status
	text, err := s.base.ReadFile(filepath.Join(s.dir, statusFile), maxShown)
	if err == nil {
		_ = json.Unmarshal(text, &before) // a damaged status is not this session's
	}
	if before.Run == status.Run {
		return nil
	}
	aside := filepath.Join(s.dir, "previous", cmp.Or(namePattern.FindString(string(before.Run)), "before-"+string(status.Run)))
	moved := []string{eventsFile, inputsFile, resultFile}
	switch {
	case err != nil: // the directories of stages may have been prepared by the user
	case s.part:
		all, _ := s.base.ReadDir(s.stageDir(0)) // it may have none
		for _, below := range all {
			if strings.HasPrefix(below.Name(), iterationsDir) {
				moved = append(moved, strings.TrimPrefix(filepath.Join(s.stageDir(0), below.Name()), s.dir+string(filepath.Separator)))
			}
		}
	default:
		moved = append(moved, "stages", "children")
	}
	for _, name := range append(moved, statusFile) { // the status comes last: it names the files' session
		err := s.base.Rename(filepath.Join(s.dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.writeStatus(s, status)
}

// prepare makes the directories and files that an iteration needs. With tree set, it records the workspace's files before the
// iteration.
func (*sessionFiles) prepare(s *session, at position, tree bool) error {
	err := s.base.MkdirAll(s.iterationDir(at.Stage, at.Iteration, at.Restarts))
	if err == nil {
		err = makeProgress(s, at)
	}
	if path := s.file(at, treeFile); err == nil && tree {
		if _, missing := s.base.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			var data []byte
			if data, err = json.Marshal(treeOf(s)); err == nil {
				err = s.base.WriteFile(path, data)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("preparing iteration %d: %w", at.Iteration, err)
	}
	return nil
}

// makeProgress makes a stage's progress file unless it exists.
func makeProgress(s *session, at position) error {
	progress, err := s.base.Open(s.progress(at.Stage), os.O_CREATE|os.O_RDONLY)
	if err != nil {
		return err
	}
	return progress.Close()
}

// writeInputs writes the session's inputs.
func (*sessionFiles) writeInputs(s *session) error {
	err := s.base.WriteFile(filepath.Join(s.dir, inputsFile), append(slices.Clone(s.inputs), '\n'))
	if err != nil {
		return fmt.Errorf("writing the inputs: %w", err)
	}
	return nil
}

// iterationContext is the content of an iteration's context file.
type iterationContext struct {
	Session    string `json:"session"`
	Pipeline   string `json:"pipeline"`
	Stage      string `json:"stage"`
	Iteration  int    `json:"iteration"`
	Maximum    int    `json:"max_iterations"`
	Progress   string `json:"progress"`
	StatusFile string `json:"status"`
	// Outputs are the files with this stage's outputs so far, Stages the directories of all stages.
	Outputs []string          `json:"outputs,omitempty"`
	Stages  map[string]string `json:"stages"`
	// Context is the text that hooks added for this iteration, Inputs the session's inputs.
	Context []string        `json:"context,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitzero"`
}

// writeContext writes the current iteration's context file.
func (m *machine) writeContext() error {
	about := m.describe()
	c := iterationContext{
		Session: m.name, Pipeline: m.Name, Stage: m.stage().Name, Iteration: m.at.Iteration, Maximum: about.MaxIterations,
		Progress: about.Progress, StatusFile: about.Status, Outputs: about.StageOutputs, Stages: map[string]string{}, Context: m.at.Context, Inputs: m.inputs,
	}
	for i, stage := range m.Stages {
		c.Stages[stage.Name] = m.stageDir(i)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = m.base.WriteFile(m.file(m.at, contextFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the context of iteration %d: %w", m.at.Iteration, err)
	}
	return nil
}

// writeOutput writes the current iteration's output.
func (*sessionFiles) writeOutput(s *session, at position, output string) error {
	if err := s.base.WriteFile(s.file(at, outputFile), []byte(output)); err != nil {
		return fmt.Errorf("writing the output of iteration %d: %w", at.Iteration, err)
	}
	return nil
}

// lastOutput returns the last iteration's output; empty if there is none.
func (*sessionFiles) lastOutput(s *session, at position) string {
	text, _ := s.base.ReadFile(s.file(at, outputFile), maxResult)
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// maxTree is the maximum number of files in a workspace whose changes are recorded, and maxChanged the maximum number of changes.
const (
	maxTree    = 100_000
	maxChanged = 1000
)

// maxShown and maxTreeFile are the maximum sizes of status files and tree files.
const (
	maxShown    = 16 << 20
	maxTreeFile = 256 << 20
)

// treeOf returns the workspace's files that git does not ignore, with their sizes and times. Session files do not count. It
// returns nothing for a workspace with too many files.
func treeOf(s *session) map[string]string {
	tree := map[string]string{}
	isSessions := func(name string) bool { return filepath.Join(s.workspace, filepath.FromSlash(name)) == s.root }
	worktree.Walk(s.workspace, isSessions, func(name string, info fs.FileInfo) bool {
		tree[quoteName(name)] = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		return len(tree) <= maxTree
	})
	if len(tree) > maxTree {
		return nil
	}
	return tree
}

// quoteName returns a file's name as git writes it. A name with a quote, a backslash, a control character or invalid UTF-8 is in
// double quotes, with escapes, so that each name is one line, and no two names are equal.
func quoteName(name string) string {
	quoted := []byte{'"'}
	for i, r := range name {
		c := name[i]
		short := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c)
		switch {
		case short >= 0:
			quoted = append(quoted, '\\', `abtnvfr"\`[short])
		case r < ' ' || r == 0x7f || r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)):
			quoted = fmt.Appendf(quoted, `\%03o`, c)
		default:
			quoted = utf8.AppendRune(quoted, r)
		}
	}
	if len(quoted) == len(name)+1 {
		return name
	}
	return string(append(quoted, '"'))
}

// changedFiles returns the files that have changed since the current iteration began.
func (*sessionFiles) changedFiles(s *session, at position) ([]string, error) {
	data, err := s.base.ReadFile(s.file(at, treeFile), maxTreeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var before map[string]string
	if err != nil {
		return nil, fmt.Errorf("looking for changed files: %w", err)
	}
	_ = json.Unmarshal(data, &before) // if the file is damaged, the changes are unknown
	now := treeOf(s)
	if before == nil || now == nil {
		return nil, nil
	}
	var names []string
	for name, state := range now {
		if before[name] != state {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxChanged)], nil
}

// project updates the files that show the session, from the store. A failure does not fail the session: the next call tries again.
func (f *sessionFiles) project(ctx context.Context, m *machine) {
	ctx = context.WithoutCancel(ctx)
	_ = f.writeStatus(m.session, m.status())
	_ = f.projectEvents(ctx, m.session, m.store, m.about.ID)
}

// writeStatus writes the session's status.
func (*sessionFiles) writeStatus(s *session, status Status) error {
	data, err := json.MarshalIndent(status, "", "  ")
	if err == nil {
		err = s.base.WriteFile(filepath.Join(s.dir, statusFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// projectEvents appends the missing events to the file. It replaces a link or anything else that is not a regular file.
func (f *sessionFiles) projectEvents(ctx context.Context, s *session, store durable.Lister, run agent.RunID) error {
	path := filepath.Join(s.dir, eventsFile)
	file, err := s.base.Open(path, os.O_CREATE|os.O_RDWR)
	if errors.Is(err, rooted.ErrLink) && s.base.Remove(path) == nil {
		f.projected = -1
		file, err = s.base.Open(path, os.O_CREATE|os.O_RDWR)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if f.projected < 0 {
		if f.projected, err = lastEvent(file); err != nil {
			return err
		}
	}
	if _, err = file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	for {
		events, err := store.Events(ctx, run, f.projected, 500)
		if err != nil || len(events) == 0 {
			return err
		}
		var out bytes.Buffer
		for _, e := range events {
			line, err := json.Marshal(eventLine{e.Seq, e.At.UTC(), e.Name, json.RawMessage(e.Data)})
			if err != nil {
				return err
			}
			out.Write(append(line, '\n'))
		}
		if _, err := file.Write(out.Bytes()); err != nil {
			f.projected = -1 // part of a line may have been written
			return err
		}
		f.projected = events[len(events)-1].Seq
	}
}

// eventLine is a line in the event file.
type eventLine struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitzero"`
}

// lastEvent returns the last event's number in a file, and cuts off an incomplete last line. It reads only the file's end, because
// a session calls it after every iteration.
func lastEvent(file *os.File) (last int64, err error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	var tail []byte // the bytes from start on
	for start := size; ; {
		whole := bytes.LastIndexByte(tail, '\n') + 1
		before := bytes.LastIndexByte(tail[:max(whole-1, 0)], '\n') + 1
		if whole > 0 && before > 0 || start == 0 { // the last whole line is there
			var e eventLine
			if line := tail[before:whole]; len(line) > 0 && json.Unmarshal(line, &e) != nil {
				e.Seq, start, whole = 0, 0, 0 // the file is damaged: it is written again
			}
			return e.Seq, file.Truncate(start + int64(whole))
		}
		from := max(start-max(64<<10, int64(len(tail))), 0)
		more := make([]byte, start-from, size-from)
		if _, err := file.ReadAt(more, from); err != nil {
			return 0, err
		}
		tail, start = append(more, tail...), from
	}
}
