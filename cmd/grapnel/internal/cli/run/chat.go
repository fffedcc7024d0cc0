package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/registry"
)

const chatHelp = `/help   this text
/quit   end the conversation, as Ctrl-D does
//…     say something that begins with a slash
A line that ends in \ continues in the next one. You can paste several lines at once.
Ctrl-C cancels what the agent is doing and brings the prompt back.`

// NewChat returns the command chat.
func NewChat(std console.Streams) *cobra.Command {
	var o agents.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "chat",
		Short: "Have a conversation with an agent",
		Long: `Have a conversation with an agent. Each line is a turn; the agent remembers all of them.

` + chatHelp + `

At a terminal, you are asked when a hook asks for approval; without one, such a
call is refused. Piped input is read line by line, as if it were typed; the exit
code is then that of the last turn. With --json, the answers and the progress go to
standard output, as JSON Lines.

Hooks at ConversationStart are asked before the first turn, hooks at ConversationEnd
are called at the end, within 10 seconds.

` + console.ExitHelp,
		Example: `  grapnel chat --tool files --tool shell
  grapnel chat --agent fixer.yaml
  printf 'Read go.mod.\nWhich Go version is that?\n' | grapnel chat --tool files`,
		Args: console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := o.Resolve()
			if err != nil {
				return err
			}
			return console.WithTelemetry(c.Context(), "", std.Err, func(ctx context.Context) error {
				in := agents.NewInput(std)
				return chat(ctx, file, o.Rules, in, agents.NewView(std, &o, asJSON, in.Terminal == nil))
			})
		},
	}
	o.Register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write every event to standard output, as JSON Lines (docs/streams.md)")
	return c
}

// conversation is a running chat.
type conversation struct {
	*agents.Built

	in      *agents.Input
	view    *agents.View
	rules   agents.Rules
	session *agent.Session
	left    bool // the user has left the prompt
	code    int  // exit code of the last turn
}

func chat(ctx context.Context, file *registry.File, rules agents.Rules, in *agents.Input, v *agents.View) error {
	building, release := console.WithInterrupt(ctx, func() {}, in.Restore)
	m, err := agents.Build(building, file, agents.Watchers{Observer: v.Observer(), Approver: in.Approver(v), Rules: rules, Note: v.Note})
	release()
	if errors.Is(err, agents.ErrNoKey) {
		v.Fallback(err, "It does not react to your messages.")
		m, err = agents.NewShippedAgent(ctx, agents.Watchers{Observer: v.Observer(), Rules: rules})
	}
	if err != nil {
		return console.InterruptedOr(building, err)
	}
	c := &conversation{in: in, view: v, rules: rules}
	c.begin(m)
	defer c.end(ctx)
	for _, note := range m.Notes {
		v.Note(note)
	}
	if in.Terminal != nil {
		v.Note("Type a message. /help lists the commands, /quit ends.")
	}
	for {
		text, err := c.nextPrompt(ctx)
		switch {
		case errors.Is(err, io.EOF):
			c.left = true
			return c.exit()
		case err != nil:
			return err
		}
		if err := c.turn(ctx, text); err != nil {
			return err
		}
	}
}

// begin starts the conversation with a new state.
func (c *conversation) begin(m *agents.Built) {
	s := agent.NewState()
	if m.Recording != nil {
		s = m.Recording.Start()
	}
	c.Built, c.session = m, m.Agent.Session(s)
}

// end waits for background work, and closes the agent. Meanwhile, the first signal is ignored, and the second exits
// immediately.
func (c *conversation) end(ctx context.Context) {
	_, release := console.WithInterrupt(ctx, func() {}, c.in.Restore)
	defer release()
	c.closeSession(ctx)
	c.End(ctx, c.view)
}

// exit returns the exit code of the command at the end of the input. For a script, it is the exit code of its last
// turn.
func (c *conversation) exit() error {
	if c.in.Terminal != nil {
		return nil
	}
	return console.Exit(c.code)
}

// nextPrompt returns the user's next message to the agent, and handles commands. It returns io.EOF when the
// conversation is over.
func (c *conversation) nextPrompt(ctx context.Context) (string, error) {
	release := console.ExitOnSignal(func() { c.in.Restore(); c.end(ctx) }, c.in.Restore)
	defer release()
	for {
		text, err := c.in.Line(ctx, "> ")
		if errors.Is(err, agents.ErrInterrupted) {
			c.view.Note("Nothing is running. /quit or Ctrl-D ends the conversation.")
			continue
		}
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(text)
		word, isCommand := strings.CutPrefix(text, "/")
		switch {
		case text == "":
		case !utf8.ValidString(text):
			c.view.Note("The input is not UTF-8 text and was not sent.")
		case !isCommand || strings.ContainsAny(word, " \n") && !strings.HasPrefix(word, "/"):
			return text, nil
		case strings.HasPrefix(word, "/"):
			return word, nil
		case word == "quit" || word == "exit":
			return "", io.EOF
		case word == "help":
			c.view.Note(chatHelp)
		default:
			advice := ""
			if meant, ok := near.Name(word, []string{"quit", "help"}); ok {
				advice = " Did you mean /" + meant + "?"
			}
			c.view.Note(fmt.Sprintf("Unknown command /%s.%s /help lists the commands; // sends a text that begins with a slash.", word, advice))
		}
	}
}

// turn runs one turn of the agent. An error ends the conversation; a failed run does not.
func (c *conversation) turn(ctx context.Context, text string) error {
	ctx, release := console.WithInterrupt(ctx,
		func() { c.view.Note("Cancelling. Interrupt again to exit at once.") }, c.in.Restore)
	defer release()
	final, err := c.streamTurn(ctx, text)
	if _, offline := errors.AsType[*agents.OfflineError](err); offline {
		c.view.Fallback(err, "It does not react to your messages.")
		m, err := agents.NewShippedAgent(ctx, agents.Watchers{Observer: c.view.Observer(), Rules: c.rules})
		if err != nil {
			return err
		}
		c.closeSession(ctx)
		if err := c.Close(); err != nil {
			c.view.Note(err.Error())
		}
		c.begin(m)
		final, err = c.streamTurn(ctx, text)
		return c.printAnswer(ctx, final, err)
	}
	return c.printAnswer(ctx, final, err)
}

func (c *conversation) streamTurn(ctx context.Context, text string) (final agent.State, err error) {
	if c.Recording != nil {
		ctx = c.Recording.Into(ctx)
	}
	for progress, failed := range c.session.Stream(ctx, agent.UserText(text)) {
		if progress.Delta != nil {
			c.view.Delta(*progress.Delta)
			continue
		}
		final, err = progress.State, failed
	}
	return final, err
}

// printAnswer writes the answer of a turn, and reports whether the conversation continues.
func (c *conversation) printAnswer(ctx context.Context, final agent.State, err error) error {
	cause := context.Cause(ctx)
	c.code = console.ExitCode(final, err, cause)
	if c.view.Show == nil && c.view.Events == nil && !agents.IsPlainEnd(final) {
		c.view.Note(timeline.Verdict(final, err))
	}
	if final.Status() == agent.StatusDone {
		if err := c.view.Answer(c.Answer(final)); err != nil {
			return err
		}
	}
	if by, ok := errors.AsType[*console.SignalError](cause); ok && (by.Signal != os.Interrupt || c.in.Terminal == nil) {
		return console.Exit(by.Code())
	}
	if c.in.Terminal != nil {
		fmt.Fprintln(c.in.Std.Err)
	}
	return nil
}

// closeSession tells the hooks that the conversation has ended.
func (c *conversation) closeSession(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, agents.DrainTime)
	defer cancel()
	reason := agent.ClosedOtherwise
	if c.left {
		reason = agent.ClosedByUser
	}
	if err := c.session.CloseWith(ctx, reason); err != nil {
		c.view.Note(err.Error())
	}
}
