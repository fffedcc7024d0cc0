package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/linediff"
	"github.com/grapnel-go/grapnel/internal/mcpproxy"
)

// pinsFlag adds the flag --pins, and returns its folder.
func pinsFlag(c *cobra.Command) func() (string, error) {
	flag := c.Flags().String("pins", "", "the `folder` with accepted tools; otherwise one of the user's state")
	return func() (string, error) { return folderOf(*flag) }
}

// state is what grapnel mcp pins shows of a tool.
type state struct {
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	State    string          `json:"state"`
	Accepted json.RawMessage `json:"accepted,omitempty"`
	Pending  json.RawMessage `json:"pending,omitempty"`
}

func newPins(std console.Streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "pins [SERVER]",
		Short: "List the accepted tools of servers, and what has changed",
		Args:  console.Takes(0, 1, "takes the name of one server"),
	}
	folder := pinsFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, with the definitions")
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir, err := folder()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			if args, err = mcpproxy.PinnedServers(dir); err != nil {
				return err
			}
		}
		list := []state{}
		for _, server := range args {
			pins, err := mcpproxy.ReadPins(dir, server)
			if err != nil {
				return console.Usage(err)
			}
			for _, tool := range slices.Sorted(maps.Keys(pins)) {
				p := pins[tool]
				s := state{server, tool, "accepted", p.Accepted, p.Pending}
				switch {
				case p.Pending != nil && p.Accepted != nil:
					s.State = "changed"
				case p.Pending != nil:
					s.State = "new"
				}
				list = append(list, s)
			}
		}
		if asJSON {
			return console.WriteJSON(std.Out, list)
		}
		for _, s := range list {
			fmt.Fprintf(std.Out, "%s  %s  %+q\n", s.Server, s.State, s.Tool)
			if s.Pending != nil {
				fmt.Fprint(std.Out, difference(s.Accepted, s.Pending))
			}
		}
		return nil
	}
	return c
}

// difference shows what has changed in a definition, in ASCII, so that nothing is hidden.
func difference(before, after json.RawMessage) string {
	var out strings.Builder
	for _, line := range linediff.Lines(indentJSON(before), indentJSON(after)) {
		fmt.Fprintf(&out, "  %c %s\n", line.Mark, inASCII(line.Text))
	}
	return out.String()
}

// inASCII returns a text with all other characters as in Go.
func inASCII(text string) string {
	var out strings.Builder
	for _, r := range text {
		if ' ' <= r && r <= '~' {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}

func indentJSON(definition json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, definition, "", "  ") != nil {
		return ""
	}
	return b.String()
}

func newAccept(std console.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "accept SERVER [TOOL...]",
		Short: "Accept new and changed tools of a server",
		Long: `accept lets clients see and call tools that are new or have changed; without a TOOL, all that wait. Look at them with
"grapnel mcp pins" first: a description is read by the model. Clients see them when they list the tools again.`,
		Example: "  grapnel mcp accept files read_file",
		Args:    console.Takes(1, console.Unlimited, "needs the name of a server"),
	}
	folder := pinsFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir, err := folder()
		if err != nil {
			return err
		}
		tools, err := mcpproxy.AcceptPins(dir, args[0], args[1:]...)
		if err != nil {
			return console.Usage(err)
		}
		for _, tool := range tools {
			fmt.Fprintf(std.Out, "%+q\n", tool)
		}
		return nil
	}
	return c
}

func newForget(console.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "forget SERVER",
		Short: "Remove all that is known about a server's tools: its next list is accepted",
		Args:  console.Takes(1, 1, "needs the name of a server"),
	}
	folder := pinsFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir, err := folder()
		if err != nil {
			return err
		}
		return console.Usage(mcpproxy.ForgetPins(dir, args[0]))
	}
	return c
}
