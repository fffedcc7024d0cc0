package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// fileFormat is the pipeline file format that this version reads.
const fileFormat = 1

// LoadOptions configures Load. The zero value reads none of the user's files.
type LoadOptions struct {
	// Global is the file with the user's hooks for all pipelines; it need not exist. Empty means none.
	Global string
	// Folder is the user's folder with the folders agents and pipelines. A name in a pipeline is looked up beside the
	// pipeline, in the folder agents or pipelines beside it, and then there. Empty means none.
	Folder string
	// NeedFiles requires a file for each agent. Otherwise a name without a file is left to Options.Agents.
	NeedFiles bool
	// Host performs the hooks' actions: a missing part is an error where an action needs it. Its Spawner is not used.
	Host action.Host
	// Files, unless nil, contains the content of all files but Global, by slash-separated paths relative to one folder. Then Load
	// reads no others.
	Files map[string]string
}

// read returns a file's content.
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

// absolute returns a file's absolute path, or for Files the clean path.
func (o LoadOptions) absolute(path string) (string, error) {
	if o.Files != nil {
		return filepath.ToSlash(filepath.Clean(path)), nil
	}
	return filepath.Abs(path)
}

// exists reports whether a regular file exists.
func (o LoadOptions) exists(path string) bool {
	if o.Files != nil {
		_, ok := o.Files[filepath.ToSlash(path)]
		return ok
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Load reads a pipeline from its file, with its agents' files, the pipelines that its hooks start, and the user's hooks. The error
// joins all mistakes, each with file, line and column; those in hooks are found once the stages can be read. It does not check agent
// files.
func Load(path string, o LoadOptions) (*Pipeline, error) {
	path, err := o.absolute(path)
	if err != nil {
		return nil, fmt.Errorf("load pipeline: %w", err)
	}
	o.Host.Spawner = noSpawner{}
	p, spawns, err := o.loadOne(path)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(spawns); i++ { // further ones are appended
		spawn := spawns[i]
		if _, known := p.source.Pipelines[spawn.Target]; known {
			continue
		}
		var child *Pipeline
		var more []*hooks.Origin
		at, err := o.findFile(spawn.Target, "pipelines", filepath.Join(filepath.Dir(path), "-"))
		if err == nil {
			child, more, err = o.loadOne(at)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: pipeline: %w", spawn.File, spawn.Line, err)
		}
		if p.source.Pipelines == nil {
			p.source.Pipelines = map[string]source{}
		}
		p.source.Pipelines[spawn.Target] = child.source
		spawns = append(spawns, more...)
	}
	return p, nil
}

// loadOne reads one pipeline and the files that it names, and checks their content. It also returns the places where hooks start
// pipelines.
func (o LoadOptions) loadOne(path string) (*Pipeline, []*hooks.Origin, error) {
	src := source{Path: path, Files: map[string]string{}, Agents: map[string]string{}, Loops: map[string]string{}}
	text, err := o.read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("load pipeline: %w", err)
	}
	src.Files[path] = string(text)
	if err := src.readGlobal(o.Global); err != nil {
		return nil, nil, err
	}
	p, err := parse(src)
	if err != nil {
		return nil, nil, err
	}
	if err := joinMistakes(p.readLoops(o)); err != nil {
		return nil, nil, err
	}
	mistakes := slices.Concat(p.checkPrompts(), p.checkCommands(o.Host), p.readAgents(o))
	spawns, more := p.checkHooks(o.Host)
	if err := joinMistakes(append(mistakes, more...)); err != nil {
		return nil, nil, err
	}
	return p, spawns, nil
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
	_, err = decodeFile(path, string(text), &rules{}, "")
	return err
}

// readLoops reads the files of loops.
func (p *Pipeline) readLoops(o LoadOptions) (mistakes []error) {
	for _, s := range p.each() {
		if s.Loop == "" {
			continue
		}
		at, text, err := o.readNamed(s.Loop, "loops", p.source.Path)
		if err != nil {
			mistakes = append(mistakes, p.mistake(s, "loop", err))
			continue
		}
		p.source.Files[at], p.source.Loops[s.Name] = text, at
		mistakes = append(mistakes, s.readLoop(at, text))
	}
	return mistakes
}

// readAgents reads the files of agents.
func (p *Pipeline) readAgents(o LoadOptions) (mistakes []error) {
	for _, s := range p.each() {
		from := cmp.Or(s.loopFile, p.source.Path)
		if s.Agent.isInline() {
			at := from + inlineMark + s.Name + ".json"
			p.source.Files[at], p.source.Agents[s.Name] = string(s.Agent), at
			continue
		}
		if s.Agent == "" {
			continue
		}
		at, text, err := o.readNamed(string(s.Agent), "agents", from)
		switch {
		case err == nil:
			p.source.Files[at], p.source.Agents[s.Name] = text, at
		case at != "" || o.NeedFiles: // otherwise Options.Agents knows the name
			mistakes = append(mistakes, p.mistake(s, "agent", err))
		}
	}
	return mistakes
}

// readNamed reads a file that another file names: by its path, relative to the other file, or by its name. The path is empty if
// there is no such file.
func (o LoadOptions) readNamed(name, kind, of string) (path, text string, err error) {
	switch {
	case isPath(name) && filepath.IsAbs(name):
		path = name
	case isPath(name):
		path, err = o.absolute(filepath.Join(filepath.Dir(of), name))
	default:
		path, err = o.findFile(name, kind, of)
	}
	if err != nil {
		return "", "", err
	}
	data, err := o.read(path)
	return path, string(data), err
}

// findFile returns the path of a named file. It looks beside the file with the name, in the folder for the kind beside it, and in
// the user's folder for the kind.
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

// mistake returns an error at a stage's key, or at its loop if the stage's keys are in another file.
func (p *Pipeline) mistake(s *Stage, key string, err error) error {
	if s.loopFile != "" {
		key = "loop"
	}
	return p.root.FindPath(s.within).Find(key).Place().Error(fmt.Errorf("%s: %w", key, err))
}

// joinMistakes returns one error with all mistakes, each once; nil if there are none. Mistakes in files are one *yamlfile.Error,
// in the order of each file.
func joinMistakes(mistakes []error) error {
	problems, others := yamlfile.Problems(errors.Join(mistakes...))
	others = lo.UniqBy(others, error.Error)
	if problems = lo.UniqBy(problems, yamlfile.Problem.String); len(problems) > 0 {
		files := lo.Uniq(lo.Map(problems, func(p yamlfile.Problem, _ int) string { return p.File }))
		slices.SortStableFunc(problems, func(a, b yamlfile.Problem) int {
			return cmp.Or(slices.Index(files, a.File)-slices.Index(files, b.File), a.Line-b.Line, a.Column-b.Column)
		})
		others = append(others, &yamlfile.Error{Problems: problems})
	}
	return errors.Join(others...)
}

// checkPrompts returns the mistakes in prompts.
func (p *Pipeline) checkPrompts() (mistakes []error) {
	known := slices.Sorted(maps.Keys(p.stageDirs("")))
	for _, s := range p.each() {
		for _, name := range lo.Without(outputNames(s.Prompt), known...) {
			mistakes = append(mistakes, p.mistake(s, "prompt", errors.New(yamlfile.Unknown("stage of ${outputs."+name+"}", name, known))))
		}
	}
	return mistakes
}

// checkCommands returns the mistakes in commands: variables that the host refuses, and names that nothing replaces.
func (p *Pipeline) checkCommands(host action.Host) (mistakes []error) {
	for _, s := range p.each() {
		if s.Command == nil {
			continue
		}
		if host.CheckVariable != nil {
			for _, name := range s.Command.Inherit {
				if err := host.CheckVariable(name); err != nil {
					mistakes = append(mistakes, p.mistake(s, "command", fmt.Errorf("inherit: %s: %w", name, err)))
				}
			}
		}
		for _, name := range valueNames(strings.Join(s.Command.Argv, "\n")) {
			mistakes = append(mistakes, p.mistake(s, "command",
				fmt.Errorf("${%s} is not replaced in argv: a command reads the inputs from its standard input, and finds outputs by $CTX", name)))
		}
	}
	return mistakes
}

// checkHooks returns the mistakes in all stages' hooks, and the places where hooks start pipelines.
func (p *Pipeline) checkHooks(host action.Host) (spawns []*hooks.Origin, mistakes []error) {
	var files policy.Files
	for _, stage := range p.each() {
		rules, err := p.rulesOf(stage, host, &files)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		mistakes = append(mistakes, p.checkStageNames(rules.Rules())...)
		list, err := rules.Hooks()
		mistakes = append(mistakes, err)
		for _, h := range list {
			if from := h.Origin(); from != nil && from.Action == (action.Spawn{}).Type() {
				spawns = append(spawns, from)
			}
		}
	}
	return spawns, mistakes
}

// comparesStage matches a condition's comparison of the current or the next stage with a name.
var comparesStage = regexp.MustCompile(`(?:\$\{(?:NEXT_)?STAGE\}|(?:^|[^.\w])stage)\s*[!=]=\s*["']([^"']*)["']` +
	`|["']([^"']*)["']\s*[!=]=\s*(?:\$\{(?:NEXT_)?STAGE\}|stage\b)`)

// checkStageNames returns the mistakes in conditions that compare the stage with an unknown name: such a condition never matches,
// or always. The user's hooks are for all pipelines, and not checked.
func (p *Pipeline) checkStageNames(rules []policy.Rule) (mistakes []error) {
	names := lo.Map(p.each(), func(s *Stage, _ int) string { return s.Name })
	for _, r := range rules {
		if r.Layer == "global" {
			continue
		}
		for _, match := range comparesStage.FindAllStringSubmatch(r.When, -1) {
			name := match[1] + match[2]
			if name == "" || slices.Contains(names, name) { // there is no next stage after the last one
				continue
			}
			mistakes = append(mistakes, &yamlfile.Error{Problems: []yamlfile.Problem{{
				File: r.File, Position: yamlfile.Position{Line: r.Line, Column: r.Column},
				Text: "when: " + yamlfile.Unknown("stage", name, names),
			}}})
		}
	}
	return mistakes
}
