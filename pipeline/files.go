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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// sessionFiles writes the files of a session. All but the progress files can be made again from the store.
type sessionFiles struct {
	projected int64 // the number of the last event in the file; -1 until it is known
}

// begin writes the first status of a session. Files of another session with the same directory, which was deleted from its store, are
// moved to the folder previous: they would count as those of this session. A stage of a parallel block that begins again keeps its
// progress file.
func (f *sessionFiles) begin(s *session, status Status) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	var before Status
	text, err := os.ReadFile(filepath.Join(s.dir, statusFile))
	if err == nil {
		_ = json.Unmarshal(text, &before) // a damaged one is not of this session
	}
	if before.Run == status.Run {
		return nil
	}
	aside := filepath.Join(s.dir, "previous", cmp.Or(namePattern.FindString(string(before.Run)), "before-"+string(status.Run)))
	moved := []string{eventsFile, inputsFile, resultFile}
	switch {
	case err != nil: // the directories of stages may have been prepared by the user
	case s.part:
		all, _ := filepath.Glob(filepath.Join(s.stageDir(0), iterationsDir+"*")) // the pattern is correct
		for _, path := range all {
			moved = append(moved, strings.TrimPrefix(path, s.dir+string(filepath.Separator)))
		}
	default:
		moved = append(moved, "stages", "children")
	}
	for _, name := range append(moved, statusFile) { // the last one says whose they are
		to := filepath.Join(aside, name)
		if _, err := os.Lstat(filepath.Join(s.dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(filepath.Join(s.dir, name), to)); err != nil {
			return err
		}
	}
	return f.writeStatus(s, status)
}

// prepare makes the directories and files that an iteration needs. With tree set, it records the files of the workspace
// before the iteration.
func (*sessionFiles) prepare(s *session, at position, tree bool) error {
	if err := os.MkdirAll(s.iterationDir(at.Stage, at.Iteration, at.Restarts), 0o700); err != nil {
		return fmt.Errorf("preparing iteration %d: %w", at.Iteration, err)
	}
	progress, err := os.OpenFile(s.progress(at.Stage), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = progress.Close()
	}
	if path := s.file(at, treeFile); err == nil && tree {
		if _, missing := os.Stat(path); errors.Is(missing, fs.ErrNotExist) {
			var data []byte
			if data, err = json.Marshal(treeOf(s)); err == nil {
				err = writeFile(path, data)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("preparing iteration %d: %w", at.Iteration, err)
	}
	return nil
}

// writeInputs writes the inputs of the session.
func (*sessionFiles) writeInputs(s *session) error {
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = writeFile(filepath.Join(s.dir, inputsFile), append(slices.Clone(s.inputs), '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the inputs: %w", err)
	}
	return nil
}

// iterationContext is the content of the context file of an iteration.
type iterationContext struct {
	Session    string `json:"session"`
	Pipeline   string `json:"pipeline"`
	Stage      string `json:"stage"`
	Iteration  int    `json:"iteration"`
	Maximum    int    `json:"max_iterations"`
	Progress   string `json:"progress"`
	StatusFile string `json:"status"`
	// Outputs are the files with the outputs of this stage so far, Stages the directories of all stages.
	Outputs []string          `json:"outputs,omitempty"`
	Stages  map[string]string `json:"stages"`
	// Context are texts of hooks for this iteration, Inputs the inputs of the session.
	Context []string        `json:"context,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitzero"`
}

// writeContext writes the context file of the current iteration.
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
		err = writeFile(m.file(m.at, contextFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the context of iteration %d: %w", m.at.Iteration, err)
	}
	return nil
}

// writeOutput writes the output of the current iteration.
func (*sessionFiles) writeOutput(s *session, at position, output string) error {
	err := os.MkdirAll(s.iterationDir(at.Stage, at.Iteration, at.Restarts), 0o700)
	if err == nil {
		err = writeFile(s.file(at, outputFile), []byte(output))
	}
	if err != nil {
		return fmt.Errorf("writing the output of iteration %d: %w", at.Iteration, err)
	}
	return nil
}

// lastOutput returns the output of the last iteration; empty if there is none.
func (*sessionFiles) lastOutput(s *session, at position) string {
	text, _ := os.ReadFile(s.file(at, outputFile))
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// writeFile replaces a file in one step.
func writeFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(0o600), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// maxTree is the maximum number of files of which changes are recorded, and maxChanged that of recorded changes.
const (
	maxTree    = 100_000
	maxChanged = 1000
)

// treeOf returns the files of the workspace, with their sizes and times: those that git knows or would add, if it is in a
// repository, otherwise all. Files of sessions do not count. It returns nothing for a workspace with too many files.
func treeOf(s *session) map[string]string {
	tree, sessions := map[string]string{}, s.root
	add := func(name string) error {
		path := filepath.Join(s.workspace, name)
		if strings.HasPrefix(path, sessions+string(filepath.Separator)) {
			return nil
		}
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			tree[filepath.ToSlash(name)] = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		}
		if len(tree) > maxTree {
			return fs.SkipAll
		}
		return nil
	}
	if names, ok := gitFiles(s.workspace); ok {
		for _, name := range names {
			if add(name) != nil {
				return nil
			}
		}
		return tree
	}
	err := filepath.WalkDir(s.workspace, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not watched
		case d.IsDir() && (path == sessions || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(s.workspace, path)
		if err != nil {
			return err
		}
		return add(name)
	})
	if err != nil || len(tree) > maxTree {
		return nil
	}
	return tree
}

// gitFiles returns the files of a work tree of git below dir, except ignored ones.
func gitFiles(dir string) ([]string, bool) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard") //nolint:noctx // it is short
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, false
	}
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool { return name == "" }), true
}

// changedFiles returns the files that have changed since the current iteration began.
func (*sessionFiles) changedFiles(s *session, at position) ([]string, error) {
	data, err := os.ReadFile(s.file(at, treeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var before map[string]string
	if err != nil {
		return nil, fmt.Errorf("looking for changed files: %w", err)
	}
	_ = json.Unmarshal(data, &before) // where it is damaged, the changes are not known
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

// project updates the files that show the session, from the store. A failure is not an error of the session: the next call
// tries again.
func (f *sessionFiles) project(ctx context.Context, m *machine) {
	ctx = context.WithoutCancel(ctx)
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return
	}
	_ = f.writeStatus(m.session, m.status())
	_ = f.projectEvents(ctx, m.store, m.about.ID, filepath.Join(m.dir, eventsFile))
}

// writeStatus writes the status of the session.
func (*sessionFiles) writeStatus(s *session, status Status) error {
	data, err := json.MarshalIndent(status, "", "  ")
	if err == nil {
		err = writeFile(filepath.Join(s.dir, statusFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// projectEvents appends the events to the file that it does not have yet.
func (f *sessionFiles) projectEvents(ctx context.Context, store durable.Store, run agent.RunID, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
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
			f.projected = -1 // a part of a line may have been written
			return err
		}
		f.projected = events[len(events)-1].Seq
	}
}

// eventLine is a line of the file with the events.
type eventLine struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitzero"`
}

// lastEvent returns the number of the last event in a file, and cuts off an incomplete last line. It reads the end of the file
// only: a session reads it after every iteration.
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
