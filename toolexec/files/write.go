package files

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// WriteArgs are the arguments of Write.
type WriteArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the root"`
	Content string `json:"content" jsonschema:"the whole content of the file"`
	IfHash  string `json:"if_hash,omitempty" jsonschema:"write only if the file still has this hash, which read_file returned"`
}

// Written is the result of a write or an edit.
type Written struct {
	// Path is the file, relative to the root and without links.
	Path string
	// Created reports that the file did not exist before.
	Created bool
	// Size is the file size in bytes, and Before its previous size.
	Size, Before int
	// Lines are the line numbers of an edit's replacements, counted from 1 in the old file. They are nil after Write.
	Lines []int
	// Hash is the file's hash.
	Hash string
}

// Write writes a whole file, and creates missing directories.
func (t *Tree) Write(ctx context.Context, in WriteArgs) (Written, error) {
	if len(in.Content) > t.config.MaxWriteBytes {
		return Written{}, systemError("write", in.Path, tooBig(len(in.Content), t.config.MaxWriteBytes))
	}
	return t.change(ctx, "write", in.Path, in.IfHash, func(string, bool) (string, []int, error) { return in.Content, nil, nil })
}

// change calls make with a file's content and writes the result to the file. Other changes to the tree wait until it
// returns.
func (t *Tree) change(
	ctx context.Context, op, given, ifHash string, make func(old string, exists bool) (string, []int, error),
) (Written, error) {
	name, err := t.fileName(op, given)
	if err != nil {
		return Written{}, err
	}
	if t.config.ReadOnly {
		return Written{}, problem(op, given, "the files are read-only")
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	if ctx.Err() != nil {
		return Written{}, fmt.Errorf("%s %q: %w", op, given, context.Cause(ctx))
	}
	target, err := t.target(name, op == "write" && ifHash == "")
	if err != nil {
		return Written{}, t.suggestName(ctx, systemError(op, given, err), name)
	}
	defer target.dir.Close()
	old, exists, err := target.readTarget(t.config.MaxWriteBytes, op == "edit" || ifHash != "")
	if err != nil {
		return Written{}, systemError(op, given, err)
	}
	if ifHash != "" && (!exists || hashOf(old) != ifHash) {
		return Written{}, problem(op, given, "the file was changed since it had the hash %q: read it again", ifHash)
	}
	content, lines, err := make(old, exists)
	if err != nil {
		return Written{}, t.suggestName(ctx, systemError(op, given, err), name)
	}
	if len(content) > t.config.MaxWriteBytes {
		return Written{}, systemError(op, given, tooBig(len(content), t.config.MaxWriteBytes))
	}
	if err := target.put(content); err != nil {
		return Written{}, systemError(op, given, err)
	}
	w := Written{Path: target.name, Created: !exists, Size: len(content), Lines: lines, Hash: hashOf(content)}
	if exists {
		w.Before = int(target.info.Size())
	}
	return w, nil
}

func tooBig(size, most int) error {
	return problem("", "", "it would be %s, and files of up to %d are written", countNoun(size, "byte"), most)
}

// Content returns a line that describes the result.
func (w Written) Content() agent.Content {
	name := showPath(w.Path)
	switch {
	case w.Lines != nil:
		return agent.TextContent(fmt.Sprintf("edited %s: %s, at %s; %s, were %d; hash %s",
			name, countNoun(len(w.Lines), "replacement"), linesText(w.Lines), countNoun(w.Size, "byte"), w.Before, w.Hash))
	case w.Created:
		return agent.TextContent(fmt.Sprintf("made %s: %s; hash %s", name, countNoun(w.Size, "byte"), w.Hash))
	}
	return agent.TextContent(fmt.Sprintf("wrote %s: %s, were %d; hash %s", name, countNoun(w.Size, "byte"), w.Before, w.Hash))
}
