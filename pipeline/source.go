package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// Pipeline is a pipeline with the content of its files. It does not change.
type Pipeline struct {
	Definition

	source source
	root   yamlfile.Node // the file's content, for the places of mistakes
}

// source is a pipeline's files as a session stores them, so that a later change in a file does not affect the session.
type source struct {
	// Path is the path of the pipeline file. Global is the path of the file with the user's hooks; empty without one.
	Path   string `json:"path"`
	Global string `json:"global,omitempty"`
	// Files contains the content of all files by path.
	Files map[string]string `json:"files"`
	// Agents contains the paths of agent files by stage.
	Agents map[string]string `json:"agents,omitempty"`
	// Loops contains the paths of loop files by stage.
	Loops map[string]string `json:"loops,omitempty"`
	// Pipelines contains the pipelines that hooks may start, by the names that hooks use. Only the topmost source has them.
	Pipelines map[string]source `json:"pipelines,omitempty"`
}

// parse reads a source's pipeline.
func parse(src source) (*Pipeline, error) {
	p := &Pipeline{source: src}
	var err error
	if p.root, err = decodeFile(src.Path, src.Files[src.Path], &p.Definition, "name and stages"); err != nil {
		return nil, err
	}
	p.locate()
	for _, s := range p.each() {
		if path := src.Loops[s.Name]; path != "" {
			if err := s.readLoop(path, src.Files[path]); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// readLoop takes over the keys in the stage's loop file.
func (s *Stage) readLoop(path, text string) error {
	var loop Stage
	root, err := decodeFile(path, text, &loop, "name, termination, and agent or command")
	if loop.Loop != "" || len(loop.Parallel) > 0 {
		err = errors.Join(err, root.Place().Error(errors.New("a loop has an agent or a command, no other loop and no parallel stages")))
	}
	s.mergeLoop(loop, path)
	return err
}

// decodeFile decodes a file, and returns its content for the places of mistakes. required names the keys to add to an empty file.
// If it is empty, the file may be empty, too.
func decodeFile(path, text string, into any, required string) (yamlfile.Node, error) {
	file := yamlfile.Parse(path, []byte(text))
	if !file.CheckFormat(fileFormat) {
		return yamlfile.Node{}, file.Err()
	}
	root, ok := file.Root()
	switch {
	case ok:
		root.Decode(into)
	case file.Err() == nil && required != "":
		return root, file.At(yamlfile.Position{Line: 1, Column: 1}).Error(errors.New("the file is empty: add " + required))
	}
	return root, file.Err()
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

// Files returns the content of all files by path: the pipeline's files, and the files of pipelines that its hooks may start,
// without the user's hooks.
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

// isInline reports whether a path stands for an agent that a pipeline file or a loop file defines.
func (src *source) isInline(path string) bool {
	at := strings.LastIndex(path, inlineMark)
	if at < 0 {
		return false
	}
	_, known := src.Files[path[:at]]
	return known && strings.HasSuffix(path, ".json")
}

// inlineMark precedes the stage's name in the path of an agent that the pipeline file defines.
const inlineMark = "#"

// agentStage describes a stage for Options.Agents.
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

// layers returns a stage's hook layers, from the innermost out.
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

// hooksOf returns a stage's hooks.
func (p *Pipeline) hooksOf(stage *Stage, host action.Host) ([]hooks.Hook, error) {
	loaded, err := p.rulesOf(stage, host, nil)
	if err != nil {
		return nil, err
	}
	return loaded.Hooks()
}

// rulesOf returns a stage's rules. files, unless nil, keeps parsed files.
func (p *Pipeline) rulesOf(stage *Stage, host action.Host, files *policy.Files) (*policy.Policy, error) {
	return policy.Load(p.layers(stage), policy.Options{Host: host, Dir: host.Dir, Read: p.read, Files: files})
}

// read returns a file's content as it was when the session began.
func (p *Pipeline) read(path string) ([]byte, error) {
	if text, ok := p.source.Files[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("a pipeline file cannot include other files")}
}

// Warnings returns probable mistakes in all stages' hooks, and in the pipelines that the hooks start.
func (p *Pipeline) Warnings(host action.Host) ([]policy.Warning, error) {
	host.Spawner = noSpawner{}
	all := []*Pipeline{p}
	for _, name := range slices.Sorted(maps.Keys(p.source.Pipelines)) {
		child, err := parse(p.source.Pipelines[name])
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
