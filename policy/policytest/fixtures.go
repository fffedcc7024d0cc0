package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// fixtures describes a case's environment.
type fixtures struct {
	// Files maps paths in the workspace, a folder that only this case uses, to contents. A file that begins with #!
	// becomes executable. Copy lists files beside the test file to copy there; Links maps paths of symbolic links to
	// their targets.
	Files map[string]string `key:"files"`
	Copy  []string          `key:"copy"`
	Links map[string]string `key:"links"`
	// Programs maps names to scripts, which come first on the PATH.
	Programs map[string]string `key:"programs"`
	// Env holds environment variables, Secrets the entries of the secrets file.
	Env     map[string]string `key:"env"`
	Secrets map[string]string `key:"secrets"`
	// Variables override policy variables with the same names.
	Variables map[string]Value `key:"variables"`
	// Receiver is a web service on the loopback interface: its responses by path.
	Receiver map[string]response `key:"receiver"`
	// Tools, Agents, Pipelines and Funcs hold their answers by name. Model is the model's
	// answer to prompts, and Person the person's answer to gates.
	Tools     map[string]string `key:"tools"`
	Agents    map[string]string `key:"agents"`
	Pipelines map[string]string `key:"pipelines"`
	Funcs     map[string]Value  `key:"funcs"`
	Model     string            `key:"model"`
	Person    string            `key:"person"`
	// Now is the time for conditions.
	Now Time `key:"now"`
}

// response is one of the receiver's responses.
type response struct {
	// Status is the HTTP status; the default is 200.
	Status int `key:"status,positive"`
	// Body is a string, or a value that is sent as JSON.
	Body    Value             `key:"body"`
	Headers map[string]string `key:"headers"`
	// Delay is the time before the response.
	Delay time.Duration `key:"delay,nonnegative"`
}

// responseMembers is a response without ReadNode, which is read member by member.
type responseMembers response

// ReadNode reads a response, or the body alone.
func (r *response) ReadNode(n yamlfile.Node) {
	known := []string{"status", "body", "headers", "delay"}
	if n.Kind() == yamlfile.MappingNode && lo.SomeBy(n.Entries(), func(e yamlfile.Entry) bool { return slices.Contains(known, e.Key.Raw()) }) {
		n.Decode((*responseMembers)(r))
		return
	}
	r.Body.ReadNode(n)
}

// over returns f overridden by the entries of g.
func (f fixtures) over(g fixtures) fixtures {
	out := f
	out.Files, out.Links, out.Programs = lo.Assign(f.Files, g.Files), lo.Assign(f.Links, g.Links), lo.Assign(f.Programs, g.Programs)
	out.Env, out.Secrets, out.Variables = lo.Assign(f.Env, g.Env), lo.Assign(f.Secrets, g.Secrets), lo.Assign(f.Variables, g.Variables)
	out.Receiver, out.Tools, out.Agents = lo.Assign(f.Receiver, g.Receiver), lo.Assign(f.Tools, g.Tools), lo.Assign(f.Agents, g.Agents)
	out.Pipelines, out.Funcs = lo.Assign(f.Pipelines, g.Pipelines), lo.Assign(f.Funcs, g.Funcs)
	out.Copy = append(slices.Clip(f.Copy), g.Copy...)
	out.Model, out.Person = lo.CoalesceOrEmpty(g.Model, f.Model), lo.CoalesceOrEmpty(g.Person, f.Person)
	if g.Now != (Time{}) {
		out.Now = g.Now
	}
	return out
}

// world is the environment that fixtures built.
type world struct {
	root      string // the folder that contains all files below
	workspace string
	receiver  *receiver // nil without a receiver
	restore   []func() error
}

// build sets up the fixtures. Folder is the test file's folder. The process environment stays changed until close.
func (f fixtures) build(folder string) (w *world, err error) {
	root, err := os.MkdirTemp("", "grapnel-test-")
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the case: %w", err)
	}
	w = &world{root: root, workspace: filepath.Join(root, "workspace")}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if len(f.Receiver) > 0 {
		if w.receiver, err = startReceiver(f.Receiver); err != nil {
			return w, err
		}
	}
	fill(&f, w.names(folder))
	if w.receiver != nil {
		w.receiver.answers(f.Receiver)
	}
	bin := filepath.Join(root, "bin")
	if err := w.lay(&f, folder, bin); err != nil {
		return w, err
	}
	env := maps.Clone(f.Env)
	if len(f.Programs) > 0 {
		env = lo.Assign(env, map[string]string{"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH")})
	}
	return w, w.setenv(env)
}

// lay writes all of the fixtures' files: copies come from folder, and programs go to bin.
func (w *world) lay(f *fixtures, folder, bin string) error {
	for _, name := range f.Copy {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		if err := w.write(w.workspace, name, string(text)); err != nil {
			return err
		}
	}
	for dir, files := range map[string]map[string]string{w.workspace: f.Files, bin: f.Programs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating a folder for the case: %w", err)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			text := files[name]
			if dir == bin && !strings.HasPrefix(text, "#!") {
				text = "#!/bin/sh\n" + text
			}
			if err := w.write(dir, name, text); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Links)) {
		if err := w.link(name, f.Links[name]); err != nil {
			return err
		}
	}
	if len(f.Secrets) > 0 {
		lines := lo.MapToSlice(f.Secrets, func(name, value string) string { return name + "=" + value + "\n" })
		if err := w.write(w.root, "secrets.env", strings.Join(lines, "")); err != nil {
			return err
		}
	}
	return nil
}

// names returns a function that replaces the names in a case's strings.
func (w *world) names(folder string) func(string) string {
	url := ""
	if w.receiver != nil {
		url = w.receiver.url
	}
	return strings.NewReplacer("${test.workspace}", w.workspace, "${test.receiver}", url, "${test.folder}", folder).Replace
}

// inside returns a path below a folder, or an error for a path outside of it.
func inside(dir, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q must be a path below the workspace", name)
	}
	return filepath.Join(dir, name), nil
}

func (w *world) write(dir, name, text string) error {
	path, err := inside(dir, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		mode := lo.Ternary[os.FileMode](strings.HasPrefix(text, "#!"), 0o700, 0o600)
		err = os.WriteFile(path, []byte(text), mode)
	}
	if err != nil {
		return fmt.Errorf("creating the file %s: %w", name, err)
	}
	return nil
}

func (w *world) link(name, target string) error {
	path, err := inside(w.workspace, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.Symlink(target, path)
	}
	if err != nil {
		return fmt.Errorf("creating the link %s: %w", name, err)
	}
	return nil
}

func (w *world) setenv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		before, set := os.LookupEnv(name)
		if err := os.Setenv(name, env[name]); err != nil {
			return fmt.Errorf("env: %s: %w", name, err)
		}
		w.restore = append(w.restore, func() error {
			if !set {
				return os.Unsetenv(name)
			}
			return os.Setenv(name, before)
		})
	}
	return nil
}

// secrets returns the path of the secrets file, or "".
func (w *world) secrets() string {
	path := filepath.Join(w.root, "secrets.env")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// read returns the content of a file in the workspace.
func (w *world) read(name string) (string, error) {
	path, err := inside(w.workspace, name)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("file %s does not exist", name)
	}
	return string(text), err
}

func (w *world) requests() []received {
	if w.receiver == nil {
		return nil
	}
	return w.receiver.requests()
}

// close removes the folder, stops the receiver and restores the environment.
func (w *world) close() error {
	var wrong []error
	if w.receiver != nil {
		wrong = append(wrong, w.receiver.close())
	}
	for _, f := range slices.Backward(w.restore) {
		wrong = append(wrong, f())
	}
	wrong = append(wrong, os.RemoveAll(w.root))
	return errors.Join(wrong...)
}

// bodyOf returns a value as a body: a string unchanged, any other value as JSON.
func bodyOf(v Value) []byte {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return []byte(text)
	}
	return v
}
