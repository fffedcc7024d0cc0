package cli

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// What the environment says about the store.
const (
	storeVariable   = "GRAPNEL_STORE"
	keyVariable     = "GRAPNEL_STORE_KEY"
	oldKeysVariable = "GRAPNEL_STORE_OLD_KEYS"
)

// usualStore is the word for the store that is used by default.
const usualStore = "default"

// place is where runs are kept.
type place struct {
	// at is a file, or the URL of a database.
	at string
	// named is what the flag said; empty where the environment says it, or the default holds.
	named string
	// usual says that the default holds.
	usual bool
}

// placeOf returns the place that a flag or the environment names, or the default.
func placeOf(flag string) (place, error) {
	p := place{at: flag, named: flag}
	if flag == "" || flag == usualStore {
		p.at, p.named = os.Getenv(storeVariable), ""
	}
	if p.at == "" {
		home := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(home) {
			user, err := os.UserHomeDir()
			if err != nil {
				return p, &usageError{fmt.Errorf("where to keep runs is not known (%w): name a file with --durable=FILE or %s", err, storeVariable)}
			}
			home = filepath.Join(user, ".local", "state")
		}
		p.at, p.usual = filepath.Join(home, "grapnel", "runs.db"), true
	}
	if p.database() {
		return p, nil
	}
	at, err := filepath.Abs(p.at) // a run that is resumed runs elsewhere
	if err != nil {
		return p, fmt.Errorf("the store %s: %w", p.at, err)
	}
	p.at = at
	return p, nil
}

func (p place) database() bool {
	return strings.HasPrefix(p.at, "postgres://") || strings.HasPrefix(p.at, "postgresql://")
}

// String names the place, without what is secret of it.
func (p place) String() string {
	if !p.database() {
		return p.at
	}
	u, err := url.Parse(p.at)
	if err != nil {
		return "the database"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// encrypts says that what is kept there is encrypted; nothing where it is not.
func (place) encrypts() string {
	if os.Getenv(keyVariable) == "" {
		return ""
	}
	return ", encrypted"
}

// flag returns what a command needs to find the place again.
func (p place) flag() string {
	switch {
	case p.named == "":
		return ""
	case p.database() && p.String() != p.at:
		return " --store=…"
	}
	return " --store=" + shellWord(p.named)
}

// shellWord returns a word as a shell takes it.
func shellWord(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%=,") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// open opens the store there. A file that is not there is made where create says so, and
// in the usual place.
func (p place) open(ctx context.Context, create bool) (durable.Store, error) {
	keys, err := storeKeys()
	if err != nil {
		return nil, &usageError{err}
	}
	if err := p.prepare(create); err != nil {
		return nil, err
	}
	store, err := p.connect(ctx)
	if err != nil || keys == nil {
		return store, err
	}
	encrypted, err := durable.Encrypt(store, *keys)
	if err != nil {
		return nil, errors.Join(&usageError{err}, store.Close())
	}
	return encrypted, nil
}

func (p place) prepare(create bool) error {
	if p.database() {
		return nil
	}
	if p.usual {
		if err := os.MkdirAll(filepath.Dir(p.at), 0o700); err != nil {
			return &usageError{fmt.Errorf("making the folder for runs: %w", err)}
		}
		return nil
	}
	if _, err := os.Stat(p.at); errors.Is(err, fs.ErrNotExist) && !create {
		return &usageError{fmt.Errorf(`there is no store at %s: "grapnel run --durable=%s …" or "grapnel runs migrate" makes one`, p, shellWord(p.at))}
	}
	return nil
}

func (p place) connect(ctx context.Context) (durable.Store, error) {
	if p.database() {
		store, err := postgres.Open(ctx, p.at, postgres.Options{})
		if err != nil {
			return nil, &usageError{err}
		}
		return store, nil
	}
	store, err := sqlite.Open(ctx, p.at, sqlite.Options{})
	if err != nil {
		return nil, &usageError{err}
	}
	return store, nil
}

// storeKeys returns what the environment says about encryption; nil for nothing.
func storeKeys() (*durable.Encryption, error) {
	text := os.Getenv(keyVariable)
	if text == "" {
		if os.Getenv(oldKeysVariable) != "" {
			return nil, fmt.Errorf("%s is set and %s is not: what is written needs a key, too", oldKeysVariable, keyVariable)
		}
		return nil, nil //nolint:nilnil // nothing is encrypted
	}
	key, err := storeKey(keyVariable, text)
	if err != nil {
		return nil, err
	}
	e := &durable.Encryption{Key: key}
	for text := range strings.SplitSeq(os.Getenv(oldKeysVariable), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, err := storeKey(oldKeysVariable, text)
		if err != nil {
			return nil, err
		}
		e.Old = append(e.Old, key)
	}
	return e, nil
}

// storeKey reads a key. What is wrong with it is said without it.
func storeKey(variable, text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == 32 {
		return key, nil
	}
	for _, form := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := form.DecodeString(text); err == nil && len(key) == 32 {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s has no key of %d characters that could be used: it must be 32 random bytes as 64 hexadecimal digits or in "+
		`base64; "openssl rand -hex 32" makes one`, variable, len(text))
}

// explainError adds to an error of a store what a user of the command can do about it.
func explainError(err error) error {
	if _, ok := errors.AsType[*durable.DecryptError](err); ok {
		return &usageError{fmt.Errorf("%w\nThe key is read from %s, and former keys from %s, with commas between them. "+
			"What was kept before there was a key is read without one", err, keyVariable, oldKeysVariable)}
	}
	return err
}

// registerStore registers the flag that names the store.
func registerStore(c *cobra.Command, at *string) {
	c.PersistentFlags().StringVar(at, "store", "",
		"where runs are kept: a SQLite `file` or a postgres:// URL (default: $GRAPNEL_STORE, or a file of the user's state)")
}
