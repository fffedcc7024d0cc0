package storage

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

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// The environment variables of the store.
const (
	storeVariable   = "GRAPNEL_STORE"
	oldKeysVariable = "GRAPNEL_STORE_OLD_KEYS"
)

// UsualStore is the name of the default store.
const UsualStore = "default"

// sqlitePrefix may precede the path of a SQLite file.
const sqlitePrefix = "sqlite:"

// Address says where a store is.
type Address struct {
	// at is the path of a file, or the URL of a database.
	at string
	// named is the value of the flag. It is empty if the address comes from the environment or is the default.
	named string
	// usual reports whether the address is the default.
	usual bool
}

// StateFolder returns the user's folder with what grapnel keeps, which need not exist.
func StateFolder() (string, error) {
	home := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(home) {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		home = filepath.Join(user, ".local", "state")
	}
	return filepath.Join(home, "grapnel"), nil
}

// AddressOf returns the address from the flag or the environment, or the default.
func AddressOf(flag string) (Address, error) {
	p := Address{at: flag, named: flag}
	if flag == "" || flag == UsualStore {
		p.at, p.named = os.Getenv(storeVariable), ""
	}
	if p.at == "" {
		folder, err := StateFolder()
		if err != nil {
			return p, console.Usagef("the default place for runs is unknown (%w): name a file with --durable=FILE or %s",
				err, storeVariable)
		}
		p.at, p.usual = filepath.Join(folder, "runs.db"), true
	}
	if p.database() || p.Server() {
		return p, nil
	}
	if p.at = strings.TrimPrefix(p.at, sqlitePrefix); p.at == "" {
		return p, console.Usagef("the store %s names no file", sqlitePrefix)
	}
	if scheme, _, isURL := strings.Cut(p.at, "://"); isURL {
		return p, console.Usagef("the store %s://…: expected a file, sqlite:FILE or a postgres:// URL", scheme)
	}
	at, err := filepath.Abs(p.at) // the working folder may be different when the run resumes
	if err != nil {
		return p, fmt.Errorf("the store %s: %w", p.at, err)
	}
	p.at = at
	return p, nil
}

func (p Address) database() bool {
	return strings.HasPrefix(p.at, "postgres://") || strings.HasPrefix(p.at, "postgresql://")
}

// Server reports whether the address is a coordinator.
func (p Address) Server() bool {
	return strings.HasPrefix(p.at, "http://") || strings.HasPrefix(p.at, "https://")
}

// String returns the address without secrets.
func (p Address) String() string {
	if !p.database() && !p.Server() {
		return p.at
	}
	u, err := url.Parse(p.at)
	if err != nil {
		return "the database"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Encrypts returns text to append to a note if the store is encrypted, and the empty string otherwise.
func (Address) Encrypts() string {
	if os.Getenv(agents.KeyVariable) == "" {
		return ""
	}
	return ", encrypted"
}

// Flag returns the flag with which a command finds the store.
func (p Address) Flag() string {
	switch {
	case p.named == "":
		return ""
	case p.Server():
		return " --server=" + console.ShellWord(p.named)
	case p.database() && p.String() != p.at:
		return " --store=…"
	}
	return " --store=" + console.ShellWord(p.named)
}

// File returns the file of a SQLite store; ok is false for other stores and coordinators.
func (p Address) File() (path string, ok bool) {
	return p.at, !p.database() && !p.Server()
}

// openDirectly opens the store. If its file does not exist, it is created when create is set or the address is the default.
func (p Address) openDirectly(ctx context.Context, create bool) (durable.Store, error) {
	keys, err := storeKeys()
	if err != nil {
		return nil, console.Usage(err)
	}
	if err := p.prepare(create); err != nil {
		return nil, err
	}
	store, err := p.connect(ctx, keys)
	if err != nil {
		return nil, console.Usage(err)
	}
	if create { // the command stores runs
		if err := ExplainError(store.CheckKey(ctx)); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return store, nil
}

// openServer returns a client of the coordinator.
func (p Address) openServer() (*client.Client, error) {
	token := os.Getenv(TokenVariable)
	if token == "" {
		return nil, console.Usagef("%s is not set: it must have a token of %s with the role viewer, to read, or operator or admin",
			TokenVariable, p)
	}
	c, err := client.New(client.Options{URL: p.at, Token: token})
	if err != nil {
		return nil, console.Usage(err)
	}
	return c, nil
}

func (p Address) prepare(create bool) error {
	if p.database() {
		return nil
	}
	if p.usual {
		if err := os.MkdirAll(filepath.Dir(p.at), 0o700); err != nil {
			return console.Usagef("making the folder for runs: %w", err)
		}
		return nil
	}
	if _, err := os.Stat(p.at); errors.Is(err, fs.ErrNotExist) && !create {
		return console.Usagef(`no store at %s: create it with "grapnel run --durable=%s …"`, p, console.ShellWord(p.at))
	}
	return nil
}

// keyedStore is a store that knows whether it needs a key.
type keyedStore interface {
	durable.Store
	CheckKey(ctx context.Context) error
}

func (p Address) connect(ctx context.Context, keys *durable.Encryption) (keyedStore, error) {
	if p.database() {
		return postgres.Open(ctx, p.at, postgres.Options{Encryption: keys})
	}
	return sqlite.Open(ctx, p.at, sqlite.Options{Encryption: keys})
}

// storeKeys returns the encryption keys from the environment; nil when none are set.
func storeKeys() (*durable.Encryption, error) {
	text := os.Getenv(agents.KeyVariable)
	if text == "" {
		if os.Getenv(oldKeysVariable) != "" {
			return nil, fmt.Errorf("%s is set, but %s is not: new data needs a key", oldKeysVariable, agents.KeyVariable)
		}
		return nil, nil
	}
	key, err := storeKey(agents.KeyVariable, text)
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

// storeKey parses a key. Its errors do not contain the key.
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
	return nil, fmt.Errorf("%s is not a valid key (%d characters): it must be 32 random bytes as 64 hexadecimal digits or in "+
		`base64; "openssl rand -hex 32" makes one`, variable, len(text))
}

// ExplainError adds advice for users of the command to an error of a store.
func ExplainError(err error) error {
	refused, ok := errors.AsType[*durable.DecryptError](err)
	switch {
	case !ok:
		return err
	case refused.Key != "" && os.Getenv(agents.KeyVariable) == "":
		return console.Usagef("%s is encrypted: set %s to the key of the store", refused.Of, agents.KeyVariable)
	case refused.Key != "":
		return console.Usagef("the key in %s does not fit: %s is encrypted with another key: set that one; "+
			"former keys go into %s, separated by commas", agents.KeyVariable, refused.Of, oldKeysVariable)
	}
	return console.Usagef("%w; runs that were stored without a key are read without %s", err, agents.KeyVariable)
}

// RegisterStore registers the flag that names the store.
func RegisterStore(c *cobra.Command, at *string) {
	c.PersistentFlags().StringVar(at, "store", "",
		"the `STORE` of the runs: a SQLite file, sqlite:FILE or a postgres:// URL (default: $GRAPNEL_STORE, or a file of the user's state)")
}

// RegisterServer registers the flag that names a coordinator in the place of a store.
func RegisterServer(c *cobra.Command, at *string) {
	usual := ""
	if os.Getenv(storeVariable) == "" {
		usual = os.Getenv(ServerVariable)
	}
	c.PersistentFlags().StringVar(at, "server", usual, "the `URL` of a coordinator, instead of a store; its token is in $"+TokenVariable+
		" (default: $"+ServerVariable+", unless $"+storeVariable+" is set)")
	c.MarkFlagsMutuallyExclusive("store", "server")
}

// TokenVariable is the environment variable with the token of a coordinator.
const TokenVariable = "GRAPNEL_TOKEN" //nolint:gosec // a name

// ServerVariable is the environment variable with the address of a coordinator.
const ServerVariable = "GRAPNEL_SERVER"
