package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/hostgate/engine"
)

// New returns the command that decides on one event of a coding agent.
func New(std console.Streams) *cobra.Command {
	var config engine.Config
	var plugin bool
	hosts := lo.Map(hostgate.Hosts, func(h hostgate.Host, _ int) string { return string(h) })
	c := &cobra.Command{
		Use:   "gate HOST",
		Short: "Decide on a call of another coding agent, as its hook",
		Long: `Decide on a call of another coding agent: read an event of its hooks from standard input, and write
the answer in the agent's form to standard output. The hosts are ` + strings.Join(hosts, ", ") + `.

Whatever goes wrong here is a denial. The program grapnel-gate does the same and starts faster.`,
		Example: `  grapnel gate codex --policy /home/ann/policy.yaml
  grapnel gate opencode --plugin > ~/.config/opencode/plugin/grapnel.js`,
		ValidArgs: hosts,
		Args:      console.Takes(1, 1, "one host, such as codex"),
		RunE: func(c *cobra.Command, args []string) error {
			config.Host = hostgate.Host(args[0])
			switch {
			case !slices.Contains(hostgate.Hosts, config.Host):
				return console.Usagef("unknown host %q: expected %s", args[0], strings.Join(hosts, ", "))
			case plugin && config.Host != hostgate.OpenCode:
				return console.Usagef("--plugin is only for opencode")
			case plugin:
				_, err := fmt.Fprint(std.Out, hostgate.Plugin)
				return err
			}
			return engine.Run(c.Context(), config, std.In, std.Out)
		},
	}
	c.Flags().StringArrayVarP(&config.Policies, "policy", "p", nil, "a policy `file`, or library:NAME; may be given several times")
	c.Flags().StringArrayVar(&config.Servers, "mcp-server", nil,
		"the `name` of an MCP server, where the host's tool names do not show it; may be given several times")
	c.Flags().StringVar(&config.State, "state", "", "the `folder` for the sessions' calls (default: grapnel/gate in the user's state folder)")
	c.Flags().DurationVar(&config.Deadline, "deadline", engine.DefaultDeadline, "deny after this time; it must be shorter than the host's timeout")
	c.Flags().BoolVar(&plugin, "plugin", false, "write opencode's plugin, which calls the gate, instead of deciding")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if host, ok := lo.Find(c.Flags().Args(), func(a string) bool { return slices.Contains(hosts, a) }); ok {
			_, _ = std.Out.Write(hostgate.Refusal(hostgate.Host(host), nil, "grapnel gate: not executed: "+err.Error()))
		}
		return console.Usagef("%v", err)
	})
	return c
}
