package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxTools limits a server's tools, and maxPages its list's pages.
const (
	maxTools = 1000
	maxPages = 100
)

// definition is a hash of the parts of a tool on which calls depend. If it changes, the tool is no longer called.
type definition [sha256.Size]byte

func definitionOf(t *sdk.Tool) definition {
	return sha256.Sum256([]byte(jsonOf(t.InputSchema)))
}

// jsonOf returns a decoded JSON value as JSON.
func jsonOf(v any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(text.String())
}

// list reads the server's tool list, and records the definitions. It is not safe for concurrent use.
func (c *session) list(ctx context.Context) ([]*sdk.Tool, error) {
	c.news.stale.Store(false) // a change from now on makes the list stale again
	tools, err := c.listTools(ctx)
	if err != nil {
		c.news.stale.Store(true)
		return nil, err
	}
	c.listed = make(map[string]definition, len(tools))
	for _, t := range tools {
		c.listed[t.Name] = definitionOf(t)
	}
	return tools, nil
}

func (c *session) listTools(ctx context.Context) ([]*sdk.Tool, error) {
	var tools []*sdk.Tool
	cursor, size := "", 0
	for range maxPages {
		page, err := c.sdk.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			size += len(jsonOf(t))
		}
		tools = append(tools, page.Tools...)
		switch {
		case len(tools) > maxTools:
			return nil, fmt.Errorf("it lists more than %d tools", maxTools)
		case size > c.server.MaxMessageBytes:
			return nil, fmt.Errorf("its list of tools is longer than %d bytes (MaxMessageBytes)", c.server.MaxMessageBytes)
		case page.NextCursor == "":
			return tools, nil
		}
		cursor = page.NextCursor
	}
	return nil, fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

// pickTools returns the tools that Only and Except select, or an error that joins the list's problems.
func pickTools(s Server, tools []*sdk.Tool) ([]*sdk.Tool, error) {
	var wrong []error
	names := lo.Map(tools, func(t *sdk.Tool, _ int) string { return t.Name })
	for _, pattern := range slices.Concat(s.Only, s.Except) {
		literal := !strings.ContainsAny(pattern, `*?[\`)
		if literal && !slices.Contains(names, pattern) {
			wrong = append(wrong, fmt.Errorf("unknown tool %q, which Only or Except names; available: %s", pattern, some(names)))
		}
	}
	kept := lo.Filter(tools, func(t *sdk.Tool, _ int) bool { return s.picks(t.Name) })
	for name, n := range lo.CountValuesBy(kept, func(t *sdk.Tool) string { return t.Name }) {
		if n > 1 {
			wrong = append(wrong, fmt.Errorf("it lists %d tools named %q: list the name in Except to omit them", n, shortenText(name)))
		}
		if name == "" {
			wrong = append(wrong, errors.New("it lists a tool without a name"))
		}
	}
	return kept, errors.Join(wrong...)
}

// some returns a list's first names as text.
func some(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := fmt.Sprintf("%q", lo.Slice(names, 0, 20))
	if more := len(names) - 20; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// check returns an error if a tool must not be called: it was removed, or its arguments have changed. It first reads a
// changed list again.
func (c *session) check(ctx context.Context, t *tool) error {
	select {
	case <-c.refreshing:
		defer func() { c.refreshing <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.news.stale.Load() {
		if _, err := c.list(ctx); err != nil {
			return fmt.Errorf("reading its list of tools, which has changed: %w", err)
		}
	}
	switch now, ok := c.listed[t.name]; {
	case !ok:
		return errGone
	case now != t.definition:
		return errChanged
	}
	return nil
}

var (
	errGone    = errors.New("the server no longer has this tool: continue without it, or connect again")
	errChanged = errors.New("the arguments of the tool have changed since the agent was built, so it is not called; connect again to use it")
)
