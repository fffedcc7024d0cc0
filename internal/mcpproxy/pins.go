package mcpproxy

import (
	"bytes"
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
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/mcpcall"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Pins are the accepted definitions of a server's tools. The first whole list is accepted as it is. Later, a tool that is
// new or has changed is hidden, and its calls are refused, until a person accepts it.
type Pins struct {
	path     string // empty: nothing is kept, and only names are compared
	name     string
	identity string

	mu      sync.Mutex
	file    pinFile
	seen    map[string]listedTool // the current listing, by skeleton
	refused map[string]string     // names to reasons that no person can lift
}

// pinFile is the content of a file with pins.
type pinFile struct {
	Version int `json:"version"`
	// Server is a hash of the server's command or address.
	Server string `json:"server"`
	// Complete says that the first list was read to its end.
	Complete bool            `json:"complete"`
	Tools    map[string]*Pin `json:"tools"`
}

// Pin is what is known about a tool.
type Pin struct {
	// Accepted is the definition that may be shown to a model. Nil means none.
	Accepted json.RawMessage `json:"accepted,omitempty"`
	// Pending is the definition that waits for a person. Nil means none.
	Pending json.RawMessage `json:"pending,omitempty"`
}

const pinVersion = 1

// OpenPins returns the pins of the server with a name, from the folder. An empty folder means that nothing is pinned. It
// returns an error if the name belongs to another server, or looks like another one's name.
func OpenPins(folder, name, identity string) (*Pins, error) {
	sum := sha256.Sum256([]byte(identity))
	p := &Pins{name: name, identity: hex.EncodeToString(sum[:]), seen: map[string]listedTool{}, refused: map[string]string{}}
	if folder == "" {
		return p, nil
	}
	p.path = pinPath(folder, name)
	others, err := PinnedServers(folder)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if other != name && skeletonOf(other) == skeletonOf(name) {
			return nil, fmt.Errorf("the server name %q looks like %q, which is in %s: choose another one with --name", name, other, folder)
		}
	}
	if err := p.load(); err != nil {
		return nil, err
	}
	if p.file.Server != p.identity {
		return nil, fmt.Errorf("the server name %q belongs to another command or address: choose another one with --name, "+
			"or, if this is the same server, run: grapnel mcp forget %s", name, name)
	}
	return p, nil
}

func pinPath(folder, name string) string { return filepath.Join(folder, name+".json") }

// PinnedServers returns the names of the servers with pins in the folder.
func PinnedServers(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the pins: %w", err)
	}
	return lo.FilterMap(entries, func(e fs.DirEntry, _ int) (string, bool) { return strings.CutSuffix(e.Name(), ".json") }), nil
}

// ReadPins returns the pins of a server, by tool.
func ReadPins(folder, name string) (map[string]*Pin, error) {
	f, err := readPinFile(pinPath(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no server named %q has pins in %s: grapnel mcp pins lists them", name, folder)
	}
	return f.Tools, err
}

// AcceptPins accepts the pending definitions of the tools (without a name: all that wait), and returns the accepted tools' names.
func AcceptPins(folder, name string, tools ...string) ([]string, error) {
	pins, err := ReadPins(folder, name)
	if err != nil {
		return nil, err
	}
	if len(tools) == 0 {
		tools = lo.Filter(slices.Sorted(maps.Keys(pins)), func(t string, _ int) bool { return pins[t].Pending != nil })
	}
	f, err := readPinFile(pinPath(folder, name))
	if err != nil {
		return nil, err
	}
	for _, tool := range tools {
		pin := f.Tools[tool]
		if pin == nil || pin.Pending == nil {
			return nil, fmt.Errorf("the tool %q of server %q has no definition that waits: grapnel mcp pins %s lists them", tool, name, name)
		}
		pin.Accepted, pin.Pending = pin.Pending, nil
	}
	return tools, writePinFile(pinPath(folder, name), f)
}

// ForgetPins removes all pins of a server, so that its next list is accepted as it is.
func ForgetPins(folder, name string) error {
	if _, err := ReadPins(folder, name); err != nil {
		return err
	}
	return os.Remove(pinPath(folder, name))
}

func readPinFile(path string) (pinFile, error) {
	f := pinFile{}
	text, err := os.ReadFile(path) // a name without separators, in the user's folder
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Version != pinVersion {
		return f, fmt.Errorf("reading the pins in %s: it is not a file that this version has written: remove it to pin again (%w)", path, errors.Join(err))
	}
	return f, nil
}

func writePinFile(path string, f pinFile) error {
	text, err := strictjson.Marshal(f)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("writing the pins: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".pins-*")
	if err != nil {
		return fmt.Errorf("writing the pins: %w", err)
	}
	_, err = file.WriteString(text + "\n")
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the pins: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// load reads the file again, because a person may have accepted something.
func (p *Pins) load() error {
	f, err := readPinFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = pinFile{Version: pinVersion, Server: p.identity}, nil
	}
	if err != nil {
		return err
	}
	if f.Tools == nil {
		f.Tools = map[string]*Pin{}
	}
	p.file = f
	return nil
}

// listedTool is a tool in a list, with its canonical definition. Its name is empty if the definition is unclear.
type listedTool struct {
	name       string
	definition json.RawMessage
}

func readTool(raw json.RawMessage) listedTool {
	o, err := mcpcall.ReadObject(raw)
	if err != nil {
		return listedTool{}
	}
	var definition any
	if strictjson.Unmarshal(string(raw), &definition) != nil { // such as a member given twice
		return listedTool{}
	}
	name, _ := o.Text("name")
	return listedTool{name, mcpcall.JSONOf(definition)}
}

// judge returns, for each tool of a page, why it must not be shown; empty if it may be. First and last are about the
// page's place in the list.
func (p *Pins) judge(tools []listedTool, first, last bool) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		clear(p.seen)
		clear(p.refused)
	}
	if p.path != "" {
		if err := p.load(); err != nil {
			return nil, err
		}
		if first && len(p.file.Tools) > 0 {
			p.file.Complete = true
		}
	}
	before, _ := strictjson.Marshal(p.file)
	shapes := lo.CountValuesBy(tools, func(t listedTool) string { return skeletonOf(t.name) })
	reasons := make([]string, len(tools))
	for i, t := range tools {
		shape := skeletonOf(t.name)
		why := ""
		switch twin, seen := p.seen[shape]; {
		case t.name == "":
			why = "its definition is unclear"
		case seen && twin.name == t.name && !bytes.Equal(twin.definition, t.definition):
			why = "another tool of the list has the same name"
		case p.twinOf(t.name) != "":
			why = fmt.Sprintf("its name imitates %q", p.twinOf(t.name))
		case seen && twin.name != t.name && !p.isAccepted(t.name):
			why = fmt.Sprintf("its name imitates %q", twin.name)
		case shapes[shape] > 1 && !p.isAccepted(t.name):
			why = "another tool of the list has the same name, or one that looks like it"
		case shapes[shape] > 1 && lo.CountBy(tools, func(o listedTool) bool { return o.name == t.name }) > 1:
			why = "another tool of the list has the same name"
		}
		if why != "" {
			p.refused[t.name] = why
		} else if p.path != "" {
			why = p.pin(t)
		}
		reasons[i] = why
	}
	for _, t := range tools {
		if _, ok := p.seen[skeletonOf(t.name)]; !ok || p.isAccepted(t.name) {
			p.seen[skeletonOf(t.name)] = t
		}
	}
	if p.path == "" {
		return reasons, nil
	}
	p.file.Complete = p.file.Complete || last
	if after, _ := strictjson.Marshal(p.file); after == before {
		return reasons, nil
	}
	return reasons, writePinFile(p.path, p.file)
}

// twinOf returns another accepted tool that looks like the name.
func (p *Pins) twinOf(name string) string {
	for other, pin := range p.file.Tools {
		if other != name && pin.Accepted != nil && !p.isAccepted(name) && skeletonOf(other) == skeletonOf(name) {
			return other
		}
	}
	return ""
}

func (p *Pins) isAccepted(name string) bool {
	pin := p.file.Tools[name]
	return pin != nil && pin.Accepted != nil
}

// pin compares a tool with its accepted definition.
func (p *Pins) pin(t listedTool) string {
	pin := p.file.Tools[t.name]
	if pin == nil {
		pin = &Pin{}
		p.file.Tools[t.name] = pin
	}
	switch {
	case pin.Accepted == nil && !p.file.Complete && isPlain(t.name):
		pin.Accepted = t.definition
	case bytes.Equal(pin.Accepted, t.definition):
		pin.Pending = nil
	default:
		pin.Pending = t.definition
	}
	return p.waiting(t.name)
}

// waiting returns why a tool waits for a person; empty if it does not.
func (p *Pins) waiting(name string) string {
	pin := p.file.Tools[name]
	var why string
	switch {
	case pin == nil:
		return "the server has not listed it: list its tools first"
	case pin.Pending == nil && pin.Accepted != nil:
		return ""
	case pin.Accepted != nil:
		why = "its definition has changed since it was accepted"
	case p.file.Complete:
		why = "it is new"
	default:
		why = "its name has unusual characters"
	}
	return fmt.Sprintf("%s: look at it with: grapnel mcp pins %s; accept it with: grapnel mcp accept %s %s", why, p.name, p.name, quoteName(name))
}

func quoteName(name string) string {
	if isPlain(name) {
		return name
	}
	return fmt.Sprintf("%+q", name)
}

// check returns why a tool must not be called; empty if it may be.
func (p *Pins) check(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.refused[name]; why != "" {
		return why
	}
	if p.path == "" {
		if twin, ok := p.seen[skeletonOf(name)]; ok && twin.name != name {
			return fmt.Sprintf("its name imitates %q", twin.name)
		}
		return ""
	}
	if p.file.Tools[name] == nil || p.file.Tools[name].Pending != nil { // another process may have listed it, or a person accepted it
		if err := p.load(); err != nil {
			return err.Error()
		}
	}
	return p.waiting(name)
}

// schemaOf returns the schema of an accepted tool's arguments, or nil.
func (p *Pins) schemaOf(name string) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.seen[skeletonOf(name)]
	definition := t.definition
	if !ok || t.name != name {
		pin := p.file.Tools[name]
		if pin == nil {
			return nil
		}
		definition = pin.Accepted
	}
	o, _ := mcpcall.ReadObject(definition)
	return o.Get("inputSchema")
}
