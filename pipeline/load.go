package pipeline

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// fileFormat is the format of pipeline files that this version reads.
const fileFormat = 1

// Pipeline is a pipeline with the texts of its files. It does not change.
type Pipeline struct {
	Definition

	source  source
	spawned []spawn // the places where its hooks start pipelines
}

// source is what a session keeps of its pipeline, so that a later change of a file does not change the session.
type source struct {
	// Path is the path of the pipeline file, Global that of the user's hooks; empty without one.
	Path   string `json:"path"`
	Global string `json:"global,omitempty"`
	// Files are the texts of all files, by their paths.
	Files map[string]string `json:"files"`
	// Agents are the paths of the files of agents, by stage.
	Agents map[string]string `json:"agents,omitempty"`
	// Loops are the paths of the files of loops, by stage.
	Loops map[string]string `json:"loops,omitempty"`
	// Pipelines are those that hooks may start, by the names that hooks give them. Only the topmost source has them.
	Pipelines map[string]source `json:"pipelines,omitempty"`
}

// LoadOptions configures Load. The zero value reads no files of the user.
type LoadOptions struct {
	// Global is the file with the user's hooks for all pipelines; it need not exist. Empty means none.
	Global string
	// Folder is the user's folder with the folders agents and pipelines. A name in a pipeline is looked up beside the
	// pipeline, in the folder agents or pipelines beside it, and then there. Empty means none.
	Folder string
	// NeedFiles requires a file for each agent. Otherwise a name without a file is left to Options.Agents.
	NeedFiles bool
	// Host performs the actions of the hooks: a missing part of it is an error where an action needs it. Its Spawner is not
	// used.
	Host action.Host
	// Files, unless nil, are the texts of all files but Global, by their paths, with slashes and relative to one folder. Then
	// Load reads no others.
	Files map[string]string
}

// read returns the text of a file.
func (o LoadOptions) read(path string) ([]byte, error) {
	if o.Files == nil {
		return yamlfile.Read(path)
	}
	text, ok := o.Files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// absolute returns the absolute path of a file. Those of Files have none.
func (o LoadOptions) absolute(path string) (string, error) {
	if o.Files != nil {
		return filepath.ToSlash(filepath.Clean(path)), nil
	}
	return filepath.Abs(path)
}

// exists reports whether there is a file.
func (o LoadOptions) exists(path string) bool {
	if o.Files != nil {
		_, ok := o.Files[filepath.ToSlash(path)]
		return ok
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Load reads a pipeline from its file, with the files of its agents, the pipelines that its hooks start, and the hooks of the
// user. The error joins all mistakes in the pipelines and their hooks, each with file, line and column. It does not read the
// content of agents.
func Load(path string, o LoadOptions) (*Pipeline, error) {
	path, err := o.absolute(path)
	if err != nil {
		return nil, fmt.Errorf("load pipeline: %w", err)
	}
	o.Host.Spawner = noSpawner{}
	p, err := loadOne(path, o)
	if err != nil {
		return nil, err
	}
	all := map[string]source{}
	for waiting := p.spawned; len(waiting) > 0; {
		s := waiting[0]
		waiting = waiting[1:]
		if _, known := all[s.pipeline]; known {
			continue
		}
		at, err := o.findFile(s.pipeline, "pipelines", filepath.Join(filepath.Dir(path), "-"))
		var child *Pipeline
		if err == nil {
			child, err = loadOne(at, o)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: pipeline: %w", s.file, s.line, err)
		}
		all[s.pipeline] = child.source
		waiting = append(waiting, child.spawned...)
	}
	if len(all) > 0 {
		p.source.Pipelines = all
	}
	return p, nil
}

// spawn is a place in a file where a hook starts a pipeline.
type spawn struct {
	pipeline, file string
	line           int
}

// loadOne reads one pipeline.
func loadOne(path string, o LoadOptions) (*Pipeline, error) {
	src := source{Path: path, Files: map[string]string{}, Agents: map[string]string{}, Loops: map[string]string{}}
	text, err := o.read(path)
	if err != nil {
		return nil, fmt.Errorf("load pipeline: %w", err)
	}
	src.Files[path] = string(text)
	if err := src.readGlobal(o.Global); err != nil {
		return nil, err
	}
	file, p, err := parse(src)
	if err != nil {
		return nil, err
	}
	root, _ := file.Root()
	// wrong reports an error of a key of a stage.
	wrong := func(s *Stage, key string, err error) {
		at, _ := nodeAt(root, s.within)
		at.Find(key).Wrong("%s: %w", key, err)
	}
	for _, s := range p.each() {
		if s.Loop == "" {
			continue
		}
		at, err := o.fileOf(s.Loop, "loops", path)
		var text []byte
		if err == nil {
			text, err = o.read(at)
		}
		if err != nil {
			wrong(s, "loop", err)
			continue
		}
		src.Files[at], src.Loops[s.Name] = string(text), at
	}
	if err := file.Err(); err != nil {
		return nil, err
	}
	if _, p, err = parse(src); err != nil { // with the loops
		return nil, err
	}
	known := slices.Sorted(maps.Keys(p.stageDirs("")))
	for _, s := range p.each() {
		for _, name := range lo.Without(outputNames(s.Prompt), known...) {
			wrong(s, lo.Ternary(s.loopFile == "", "prompt", "loop"), errors.New(yamlfile.Unknown("stage of ${outputs."+name+"}", name, known)))
		}
		if s.Command != nil {
			for _, name := range s.Command.Inherit {
				if o.Host.CheckVariable == nil {
					break
				}
				if err := o.Host.CheckVariable(name); err != nil {
					wrong(s, lo.Ternary(s.loopFile == "", "command", "loop"), fmt.Errorf("inherit: %s: %w", name, err))
				}
			}
			for _, name := range valueNames(strings.Join(s.Command.Argv, "\n")) {
				wrong(s, lo.Ternary(s.loopFile == "", "command", "loop"),
					fmt.Errorf("${%s} is not replaced in argv: a command reads the inputs from its standard input, and finds outputs by $CTX", name))
			}
		}
		if s.Agent.isInline() {
			at := cmp.Or(s.loopFile, path) + inlineMark + s.Name + ".json"
			src.Files[at], src.Agents[s.Name] = string(s.Agent), at
			continue
		}
		at, err := s.agentFile(path, o)
		var text []byte
		if err == nil && at != "" {
			text, err = o.read(at)
		}
		switch {
		case err != nil && s.loopFile != "":
			wrong(s, "loop", err)
		case err != nil:
			wrong(s, "agent", err)
		case at != "":
			src.Files[at], src.Agents[s.Name] = string(text), at
		}
	}
	return p, errors.Join(file.Err(), p.checkHooks(o.Host))
}

// readGlobal reads the file with the user's hooks, if there is one.
func (src *source) readGlobal(path string) error {
	if path == "" {
		return nil
	}
	text, err := yamlfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("load pipeline: %w", err)
	}
	src.Global, src.Files[path] = path, string(text)
	return checkGlobal(path, text)
}

// nodeAt returns the node at a path of keys and indexes, separated by slashes.
func nodeAt(n yamlfile.Node, path string) (yamlfile.Node, bool) {
	for step := range strings.SplitSeq(path, "/") {
		if index, err := strconv.Atoi(step); err == nil {
			n = n.Find(index)
			continue
		}
		n = n.Find(step)
	}
	return n, n.Kind() != yamlfile.AbsentNode
}

// fileOf returns the path of a file that another file names by its path, relative to that one, or by its name.
func (o LoadOptions) fileOf(name, kind, of string) (string, error) {
	switch {
	case isPath(name) && filepath.IsAbs(name):
		return name, nil
	case isPath(name):
		return o.absolute(filepath.Join(filepath.Dir(of), name))
	}
	return o.findFile(name, kind, of)
}

// agentFile returns the path of the file of the stage's agent; empty when it has none.
func (s *Stage) agentFile(path string, o LoadOptions) (string, error) {
	if s.Agent == "" {
		return "", nil
	}
	at, err := o.fileOf(string(s.Agent), "agents", cmp.Or(s.loopFile, path))
	if err != nil && !o.NeedFiles {
		return "", nil
	}
	return at, err
}

// findFile returns the path of the file that a name stands for: beside the file with the name, in the folder of its kind beside
// that, or in the user's folder of that kind.
func (o LoadOptions) findFile(name, kind, of string) (string, error) {
	dir := filepath.Dir(of)
	folders := []string{dir, filepath.Join(dir, kind)}
	if o.Folder != "" {
		folders = append(folders, filepath.Join(o.Folder, kind))
	}
	for _, folder := range folders {
		for _, extension := range []string{".yaml", ".yml", ".json"} {
			path := filepath.Join(folder, name+extension)
			if path != of && o.exists(path) {
				return o.absolute(path)
			}
		}
	}
	return "", fmt.Errorf("no file %s.yaml in %s", name, strings.Join(folders, ", "))
}

// checkGlobal reports unknown keys in the file with the user's hooks.
func checkGlobal(path string, text []byte) error {
	file := yamlfile.Parse(path, text)
	if _, ok := file.Root(); ok && file.CheckFormat(fileFormat) {
		root, _ := file.Root()
		root.Decode(&rules{})
	}
	return file.Err()
}

// parse reads the pipeline of a source.
func parse(src source) (*yamlfile.File, *Pipeline, error) {
	file, p := yamlfile.Parse(src.Path, []byte(src.Files[src.Path])), &Pipeline{source: src}
	if file.CheckFormat(fileFormat) {
		if root, ok := file.Root(); ok {
			root.Decode(&p.Definition)
			p.locate()
		} else if file.Err() == nil {
			file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add name and stages")
		}
	}
	err := file.Err()
	for _, s := range p.each() {
		if path := src.Loops[s.Name]; path != "" && err == nil {
			err = s.readLoop(path, src.Files[path])
		}
	}
	return file, p, err
}

// readLoop reads the file of the stage's loop.
func (s *Stage) readLoop(path, text string) error {
	file := yamlfile.Parse(path, []byte(text))
	var loop Stage
	if file.CheckFormat(fileFormat) {
		root, ok := file.Root()
		switch {
		case !ok && file.Err() == nil:
			file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add name, termination, and agent or command")
		case ok:
			root.Decode(&loop)
			if loop.Loop != "" || len(loop.Parallel) > 0 {
				root.Wrong("a loop has an agent or a command, no other loop and no parallel stages")
			}
		}
	}
	s.take(loop, path)
	return file.Err()
}

// Agents returns the stages whose agents have files, without their workspace and tools.
func (p *Pipeline) Agents() (all []AgentStage) {
	for _, s := range p.each() {
		if p.source.Agents[s.Name] != "" {
			all = append(all, p.agentStage(s))
		}
	}
	return all
}

// Files returns the texts of the files of the pipeline and of those that its hooks may start, without the user's hooks, by their paths.
func (p *Pipeline) Files() map[string]string {
	all := map[string]string{}
	for _, src := range append(slices.Collect(maps.Values(p.source.Pipelines)), p.source) {
		for path, text := range src.Files {
			if path != src.Global && !src.isInline(path) {
				all[path] = text
			}
		}
	}
	return all
}

// isInline reports whether a path is that of an agent that a pipeline file or a loop file defines.
func (src *source) isInline(path string) bool {
	at := strings.LastIndex(path, inlineMark)
	if at < 0 {
		return false
	}
	_, known := src.Files[path[:at]]
	return known && strings.HasSuffix(path, ".json")
}

// inlineMark precedes the name of the stage in the path of an agent that the pipeline file defines.
const inlineMark = "#"

// agentStage returns the description of a stage for what builds its agent.
func (p *Pipeline) agentStage(s *Stage) AgentStage {
	path := p.source.Agents[s.Name]
	return AgentStage{Pipeline: p.Name, Stage: s.Name, Agent: s.Agent.String(), Path: path, Text: p.source.Files[path]}
}

// hash returns the hash of all files.
func (p *Pipeline) hash() string {
	text, err := json.Marshal(p.source) // maps are written in the order of their keys
	if err != nil {
		panic(err) // strings can always be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// layers returns the layers of hooks of a stage, from the innermost out.
func (p *Pipeline) layers(s *Stage) []policy.Layer {
	var all []policy.Layer
	switch {
	case len(s.Parallel) > 0: // its stages have hooks of their own
	case s.loopFile != "":
		all = append(all, policy.Layer{Name: "stage", Kind: policy.Pipelines, Files: []string{s.loopFile}})
	default:
		all = append(all, policy.Layer{Name: "stage", Kind: policy.Pipelines, Files: []string{p.source.Path}, Within: s.within})
	}
	all = append(all, policy.Layer{Name: "pipeline", Kind: policy.Pipelines, Files: []string{p.source.Path}})
	if p.source.Global != "" {
		all = append(all, policy.Layer{Name: "global", Kind: policy.Pipelines, Files: []string{p.source.Global}})
	}
	return all
}

// hooksOf returns the hooks of a stage.
func (p *Pipeline) hooksOf(stage *Stage, host action.Host) ([]hooks.Hook, error) {
	loaded, err := p.rulesOf(stage, host, nil)
	if err != nil {
		return nil, err
	}
	return loaded.Hooks()
}

// rulesOf returns the rules of a stage. Files, unless nil, keeps parsed files.
func (p *Pipeline) rulesOf(stage *Stage, host action.Host, files *policy.Files) (*policy.Policy, error) {
	return policy.Load(p.layers(stage), policy.Options{Host: host, Dir: host.Dir, Read: p.read, Files: files})
}

// read returns the text of a file as it was when the session began.
func (p *Pipeline) read(path string) ([]byte, error) {
	if text, ok := p.source.Files[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("a pipeline file cannot include other files")}
}

// checkHooks returns the mistakes in the hooks of all stages, each once.
func (p *Pipeline) checkHooks(host action.Host) error {
	var problems []yamlfile.Problem
	var others []error
	var files policy.Files
	for _, stage := range p.each() {
		var list []hooks.Hook
		rules, err := p.rulesOf(stage, host, &files)
		if err == nil {
			problems = append(problems, p.checkStageNames(rules.Rules())...)
			list, err = rules.Hooks()
		}
		for _, h := range list {
			if from := h.Origin(); from != nil && from.Action == (action.Spawn{}).Type() {
				p.spawned = append(p.spawned, spawn{from.Target, from.File, from.Line})
			}
		}
		inFiles, more := yamlfile.Problems(err)
		problems = append(problems, inFiles...)
		for _, err := range more {
			if !slices.ContainsFunc(others, func(known error) bool { return known.Error() == err.Error() }) {
				others = append(others, err)
			}
		}
	}
	seen, unique := map[string]bool{}, problems[:0:0]
	for _, problem := range problems {
		if text := problem.String(); !seen[text] {
			seen[text], unique = true, append(unique, problem)
		}
	}
	if len(unique) > 0 {
		others = append(others, &yamlfile.Error{Problems: unique})
	}
	return errors.Join(others...)
}

// Warnings returns what is probably a mistake in the hooks of all stages, and of the pipelines that they start.
func (p *Pipeline) Warnings(host action.Host) ([]policy.Warning, error) {
	host.Spawner = noSpawner{}
	all := []*Pipeline{p}
	for _, name := range slices.Sorted(maps.Keys(p.source.Pipelines)) {
		_, child, err := parse(p.source.Pipelines[name])
		if err != nil {
			return nil, err
		}
		all = append(all, child)
	}
	var warnings []policy.Warning
	var files policy.Files
	for _, one := range all {
		for _, stage := range one.each() {
			rules, err := one.rulesOf(stage, host, &files)
			if err != nil {
				return nil, err
			}
			warnings = append(warnings, rules.Check()...)
		}
	}
	return lo.Uniq(warnings), nil
}

// encode returns the source as JSON.
func (p *Pipeline) encode() (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p.source)
	return bytes.TrimSpace(out.Bytes()), err
}
