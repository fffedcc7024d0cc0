package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/blueprints"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// startServed lets a coordinator run a pipeline, and follows the run.
func (p *pipelines) startServed(ctx context.Context, path, session string, inputs []string, look sessionLook) error {
	if session != "" || look.redo {
		return console.Usagef("--session and --redo-actions are for sessions of this folder, not for --server")
	}
	loaded, err := loadPipeline(path)
	if err != nil {
		return err
	}
	files, err := portableFiles(path, loaded)
	if err != nil {
		return console.Usage(err)
	}
	given, err := inputsOf(inputs)
	if err != nil {
		return console.Usage(err)
	}
	return p.WithCoordinator(ctx, func(k *storage.Store) error {
		if err := p.storePipeline(ctx, k.Client, loaded.Name, wire.PipelineFiles{File: filepath.Base(path), Files: files}); err != nil {
			return err
		}
		submitted, err := k.Client.Submit(ctx, wire.RunRequest{AgentName: loaded.Name, Parameters: given})
		if err != nil {
			return err
		}
		fmt.Fprintln(p.Std.Out, timeline.Clean(string(submitted.RunID)))
		about, err := k.Store.Run(ctx, submitted.RunID)
		if err != nil || look.noWait {
			return err
		}
		if err := p.watchStatus(ctx, k, about, look.asJSON); err != nil {
			return err
		}
		return (&sessionRun{pipelines: p, sessionLook: look, kept: k, about: about}).finish(ctx)
	})
}

// storePipeline stores the files of a pipeline in the blueprint of its name, unless it has them. Other files and members stay.
func (p *pipelines) storePipeline(ctx context.Context, c *client.Client, name string, files wire.PipelineFiles) error {
	now, err := c.Blueprint(ctx, name, 0)
	known := err == nil
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		return err
	}
	if known && now.Type != wire.Pipeline {
		return console.Usagef("the coordinator has a blueprint %q of type %s: give the pipeline another name", name, now.Type)
	}
	if known && now.Pipeline != nil { // further files, such as scripts, stay
		files.Workspace = now.Pipeline.Workspace
		files.Files = lo.Assign(now.Pipeline.Files, files.Files)
	}
	member, err := json.Marshal(files)
	if err != nil {
		return err
	}
	b := &blueprints.File{Name: name}
	b.Text, err = json.Marshal(map[string]any{"name": name, "type": wire.Pipeline, "pipeline": json.RawMessage(member)})
	if err != nil {
		return err
	}
	var done wire.Stored
	if known {
		changes, err := b.Changes(&now.Blueprint)
		if err != nil || changes["pipeline"] == nil {
			return err
		}
		done, err = c.UpdateBlueprint(ctx, name, json.RawMessage(`{"pipeline":`+string(member)+`}`), now.Version)
		if err != nil {
			return err
		}
	} else if done, err = c.CreateBlueprint(ctx, b.Text); err != nil {
		return err
	}
	fmt.Fprintf(p.Std.Err, "grapnel: Blueprint %s is stored as version %d.\n", done.Name, done.Version)
	return nil
}

// portableFiles returns the files of a pipeline by paths relative to its folder: those of the user's folder as if they were there.
func portableFiles(path string, p *pipeline.Pipeline) (map[string]string, error) {
	beside, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	folders := []string{beside}
	if global := GlobalHooks(); global != "" {
		folders = append(folders, filepath.Dir(global))
	}
	all := map[string]string{}
	for file, text := range p.Files() {
		found := false
		for _, folder := range folders {
			relative, err := filepath.Rel(folder, file)
			if found = err == nil && filepath.IsLocal(relative); !found {
				continue
			}
			name := filepath.ToSlash(relative)
			if other, twice := all[name]; twice && other != text {
				return nil, fmt.Errorf("two files are %s, one of them below %s: give them other names", name, folders[len(folders)-1])
			}
			all[name] = text
			break
		}
		if !found {
			return nil, fmt.Errorf("%s: the coordinator gets only files below %s: move it there", file, beside)
		}
	}
	return all, nil
}
