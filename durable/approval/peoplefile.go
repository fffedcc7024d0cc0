package approval

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// PeopleOptions configure OpenPeople. The zero value is the default.
type PeopleOptions struct {
	// Also lists people in addition to those of the file. One who has the name of a person in the file has the roles of that
	// person, and both tokens are valid.
	Also []Person
	// Log receives changes of the file, and why a changed file cannot be used. Nil disables logging.
	Log *slog.Logger
}

// OpenPeople returns the people of a file, and follows its changes: each use of the value reads the file again, so that a
// token which was removed from it is refused from then on, also in sessions that have begun. A changed file that cannot be
// read or has a mistake is logged, and the people of its last valid version remain. Without a path there are only
// PeopleOptions.Also.
func OpenPeople(path string, o PeopleOptions) (*People, error) {
	f := &peopleFile{path: path, options: o}
	if o.Log == nil {
		f.options.Log = slog.New(slog.DiscardHandler)
	}
	if _, err := NewPeople(o.Also...); err != nil {
		return nil, err
	}
	if path != "" {
		text, err := yamlfile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("reading the people who may sign in: %w", err)
		}
		people, err := parsePeople(path, text)
		if err != nil {
			return nil, err
		}
		f.text, f.listed = text, people.all
	}
	return &People{file: f}, nil
}

// peopleFile is a file of people that is read whenever its people are needed: what a file system says about the time of a
// change is too coarse for deciding whether a token is valid.
type peopleFile struct {
	path    string
	options PeopleOptions

	mu     sync.Mutex
	text   []byte // as last read
	failed string // why the file could not be read last time
	listed []Person
}

// current returns the people of the file as it is now, and those of PeopleOptions.Also.
func (f *peopleFile) current() []Person {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	all := slices.Clone(f.listed)
	for _, also := range f.options.Also {
		if known, ok := lo.Find(f.listed, func(p Person) bool { return p.Name == also.Name }); ok {
			also.Roles = known.Roles
		}
		all = append(all, also)
	}
	return all
}

// refresh reads the file.
func (f *peopleFile) refresh() {
	if f.path == "" {
		return
	}
	text, err := yamlfile.Read(f.path)
	if err == nil {
		if f.failed = ""; bytes.Equal(text, f.text) {
			return
		}
		f.text = text
		var people *People
		if people, err = parsePeople(f.path, text); err == nil {
			f.listed = people.all
			f.options.Log.Info("approval: the file of people has changed", "file", f.path, "people", len(f.listed))
			return
		}
	}
	if reason := err.Error(); reason != f.failed {
		f.failed = reason
		f.options.Log.Error("approval: the changed file of people cannot be used: the former people remain", "file", f.path, "error", err)
	}
}
