package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/files"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// tools makes the tools of an agent file. The error joins what is wrong with any of
// them.
func (m *made) tools(ctx context.Context, file *agentfile.File) ([]toolexec.Tool, error) {
	var out []toolexec.Tool
	var wrong []error
	for _, t := range file.Tools {
		tools, err := m.tool(t.Settings)
		if err != nil {
			wrong = append(wrong, t.At.Error(fmt.Errorf("the tool %q: %w", t.Kind, err)))
			continue
		}
		out = append(out, tools...)
	}
	for _, s := range file.MCP {
		client, err := connect(ctx, s)
		if err != nil {
			wrong = append(wrong, s.At.Error(err))
			continue
		}
		m.closing = append(m.closing, client.Close)
		out = append(out, client.Tools()...)
	}
	return out, errors.Join(wrong...)
}

func (m *made) tool(settings any) ([]toolexec.Tool, error) {
	switch s := settings.(type) {
	case *agentfile.Shell:
		dir, err := filepath.Abs(s.Dir)
		if err != nil {
			return nil, err
		}
		tool, err := shell.Tool(shell.Config{
			Dir: dir, Timeout: time.Duration(s.Timeout), MaxTimeout: time.Duration(s.MaxTimeout), MaxOutputBytes: int(s.MaxOutput),
			Env: append(shell.DefaultEnv(), texts(s.Env)...),
			Limits: shell.Limits{
				Processes: int(s.Limits.Processes), CPUTime: time.Duration(s.Limits.CPUTime),
				FileBytes: int64(s.Limits.FileSize), MemoryBytes: int64(s.Limits.Memory),
			},
		})
		return []toolexec.Tool{tool}, err
	case *agentfile.Files:
		tree, err := files.Open(files.Config{
			Root: cmp.Or(s.Root, "."), ReadOnly: s.ReadOnly, MaxReadBytes: int(s.MaxRead), MaxWriteBytes: int(s.MaxWrite),
		})
		if err != nil {
			return nil, err
		}
		m.closing = append(m.closing, tree.Close)
		return tree.Tools(), nil
	}
	return nil, fmt.Errorf("nothing is known of settings like %T", settings)
}

// connect starts or reaches an MCP server.
func connect(ctx context.Context, s agentfile.Server) (*mcp.Client, error) {
	server := mcp.Server{
		Name: s.Name, Command: s.Command, Dir: s.Dir, Inherit: append(mcp.DefaultInherit(), texts(s.Env)...), URL: string(s.URL),
		Only: s.Only, Except: s.Except, Policy: toolexec.Policy{Timeout: time.Duration(s.Timeout)},
	}
	token, err := variable("token_env", s.TokenEnv)
	if err != nil {
		return nil, fmt.Errorf("the MCP server %q: %w", s.Name, err)
	}
	if token != "" {
		server.Headers = http.Header{"Authorization": {"Bearer " + token}}
	}
	return mcp.Connect(ctx, server)
}

func texts[T ~string](list []T) []string {
	return lo.Map(list, func(v T, _ int) string { return string(v) })
}
