package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

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

	source source
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
}

// LoadOptions configures Load. The zero value reads no hooks of the user.
type LoadOptions struct {
	// Global is the file with the user's hooks for all pipelines; it need not exist. Empty means none.
	Global string
	// FindAgent returns the path of the file of an agent that a stage names, or an error that says where it looked. Nil
	// leaves names to Options.Agents.
	FindAgent func(name string) (path string, err error)
	// Host performs the actions of the hooks: a missing part of it is an error where an action needs it.
	Host action.Host
}

// Load reads a pipeline from its file, with the files of its agents and the hooks of the user. The error joins all mistakes
// in the pipeline and its hooks, each with file, line and column. It does not read the content of agents.
func Load(path string, o LoadOptions) (*Pipeline, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("load pipeline: %w", err)
	}
	src := source{Path: path, Files: map[string]string{}, Agents: map[string]string{}}
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("load pipeline: %w", err)
	}
	src.Files[path] = string(text)
	if o.Global != "" {
		switch text, err := yamlfile.Read(o.Global); {
		case err == nil:
			src.Global, src.Files[o.Global] = o.Global, string(text)
			if err := checkGlobal(o.Global, text); err != nil {
				return nil, err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("load pipeline: %w", err)
		}
	}
	file, p, err := parse(src)
	if err != nil {
		return nil, err
	}
	root, _ := file.Root()
	for i, s := range p.Stages {
		at, err := s.agentFile(filepath.Dir(path), o.FindAgent)
		var text []byte
		if err == nil && at != "" {
			text, err = yamlfile.Read(at)
		}
		switch {
		case err != nil:
			root.Find("stages", i, "agent").Wrong("agent: %w", err)
		case at != "":
			src.Files[at], src.Agents[s.Name] = string(text), at
		}
	}
	return p, errors.Join(file.Err(), p.checkHooks(o.Host))
}

// checkGlobal reports unknown keys in the file with the user's hooks.
func checkGlobal(path string, text []byte) error {
	file := yamlfile.Parse(path, text)
	if root, ok := file.Root(); ok && file.CheckFormat(fileFormat) {
		root, _ = file.Root()
		root.Decode(&rules{})
	}
	return file.Err()
}

// agentFile returns the path of the file of the stage's agent; empty when it has none.
func (s *Stage) agentFile(dir string, find func(name string) (string, error)) (string, error) {
	switch {
	case s.Agent == "":
		return "", nil
	case !s.isFile() && find == nil:
		return "", nil
	case !s.isFile():
		at, err := find(s.Agent)
		if err == nil {
			at, err = filepath.Abs(at)
		}
		return at, err
	case filepath.IsAbs(s.Agent):
		return s.Agent, nil
	}
	return filepath.Join(dir, s.Agent), nil
}

// parse reads the pipeline of a source.
func parse(src source) (*yamlfile.File, *Pipeline, error) {
	file, p := yamlfile.Parse(src.Path, []byte(src.Files[src.Path])), &Pipeline{source: src}
	if file.CheckFormat(fileFormat) {
		if root, ok := file.Root(); ok {
			root.Decode(&p.Definition)
		} else if file.Err() == nil {
			file.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: add name and stages")
		}
	}
	return file, p, file.Err()
}

// Agents returns the stages whose agents have files, without their workspace and tools.
func (p *Pipeline) Agents() (all []AgentStage) {
	for i := range p.Stages {
		if s := &p.Stages[i]; p.source.Agents[s.Name] != "" {
			all = append(all, p.agentStage(s))
		}
	}
	return all
}

// agentStage returns the description of a stage for what builds its agent.
func (p *Pipeline) agentStage(s *Stage) AgentStage {
	path := p.source.Agents[s.Name]
	return AgentStage{Pipeline: p.Name, Stage: s.Name, Agent: s.Agent, Path: path, Text: p.source.Files[path]}
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
func (p *Pipeline) layers(stage int) []policy.Layer {
	all := []policy.Layer{
		{Name: "stage", Kind: policy.Pipelines, Files: []string{p.source.Path}, Within: fmt.Sprintf("stages/%d", stage)},
		{Name: "pipeline", Kind: policy.Pipelines, Files: []string{p.source.Path}},
	}
	if p.source.Global != "" {
		all = append(all, policy.Layer{Name: "global", Kind: policy.Pipelines, Files: []string{p.source.Global}})
	}
	return all
}

// hooksOf returns the hooks of a stage.
func (p *Pipeline) hooksOf(stage int, host action.Host) ([]hooks.Hook, error) {
	loaded, err := policy.Load(p.layers(stage), policy.Options{Host: host, Dir: host.Dir, Read: p.read})
	if err != nil {
		return nil, err
	}
	return loaded.Hooks()
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
	for stage := range p.Stages {
		_, err := p.hooksOf(stage, host)
		if wrong, ok := errors.AsType[*yamlfile.Error](err); ok {
			problems = append(problems, wrong.Problems...)
		} else if err != nil && !slices.ContainsFunc(others, func(known error) bool { return known.Error() == err.Error() }) {
			others = append(others, err)
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

// encode returns the source as JSON.
func (p *Pipeline) encode() (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p.source)
	return bytes.TrimSpace(out.Bytes()), err
}
