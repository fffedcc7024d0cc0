package agents

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/files"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

type toolMaker = registry.Maker[[]toolexec.Tool]

// tools returns the constructors for the names of tools in agent files.
func (p *Parts) tools() map[string]toolMaker {
	return map[string]toolMaker{
		"shell": registry.With(func(_ context.Context, _ *registry.Making, s agentfile.Shell) ([]toolexec.Tool, error) {
			dir, err := filepath.Abs(p.folder(s.Dir))
			if err != nil {
				return nil, err
			}
			tool, err := shell.Tool(shell.Config{
				Dir: dir, Timeout: time.Duration(s.Timeout), MaxTimeout: time.Duration(s.MaxTimeout), MaxOutputBytes: int(s.MaxOutput),
				Env: append(shell.DefaultEnv(), toStrings(s.Env)...),
				Limits: shell.Limits{
					Processes: int(s.Limits.Processes), CPUTime: time.Duration(s.Limits.CPUTime),
					FileBytes: int64(s.Limits.FileSize), MemoryBytes: int64(s.Limits.Memory),
				},
			})
			if err != nil {
				return nil, err
			}
			return []toolexec.Tool{tool}, nil
		}),
		"files": registry.With(func(_ context.Context, m *registry.Making, s agentfile.Files) ([]toolexec.Tool, error) {
			tree, err := files.Open(files.Config{
				Root: p.folder(s.Root), ReadOnly: s.ReadOnly, MaxReadBytes: int(s.MaxRead), MaxWriteBytes: int(s.MaxWrite),
			})
			if err != nil {
				return nil, err
			}
			m.Closing(tree.Close)
			return tree.Tools(), nil
		}),
	}
}

// connectServer starts or connects to an MCP server.
func (p *Parts) connectServer(ctx context.Context, m *registry.Making, s registry.Server) ([]toolexec.Tool, error) {
	server := mcp.Server{
		Name: s.Name, Command: s.Command, Dir: p.folder(s.Dir), Inherit: append(mcp.DefaultInherit(), toStrings(s.Env)...), URL: string(s.URL),
		Only: s.Only, Except: s.Except, Policy: toolexec.Policy{Timeout: s.Timeout},
	}
	token, err := variable("token_env", s.TokenEnv)
	if err != nil {
		return nil, fmt.Errorf("the MCP server %q: %w", s.Name, err)
	}
	if token != "" {
		server.Headers = http.Header{"Authorization": {"Bearer " + token}}
	}
	client, err := mcp.Connect(ctx, server)
	if err != nil {
		return nil, err
	}
	m.Closing(client.Close)
	return client.Tools(), nil
}

func toStrings[T ~string](list []T) []string {
	return lo.Map(list, func(v T, _ int) string { return string(v) })
}
