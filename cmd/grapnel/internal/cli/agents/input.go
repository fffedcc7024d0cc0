package agents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/samber/lo"
	"golang.org/x/term"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

// ErrInterrupted is returned when Ctrl-C interrupts reading a line.
var ErrInterrupted = errors.New("interrupted")

// mostLine is the maximum length of a line of a conversation, in bytes.
const mostLine = 1 << 20

// Input reads lines from a person, with editing, history and pasting of several
// lines, or from a pipe.
type Input struct {
	asking sync.Mutex // one question at a time

	Std      console.Streams
	Terminal *term.Terminal // nil for a pipe
	Keys     *keys
	piped    *bufio.Reader

	mu  sync.Mutex
	raw *term.State // the terminal's state before raw mode; nil when it is not in raw mode
}

// NewInput returns the input of a command, which asks the person only if there is a terminal.
func NewInput(std console.Streams) *Input {
	in := &Input{Std: std, piped: bufio.NewReader(std.In)}
	if term.IsTerminal(int(std.In.Fd())) && term.IsTerminal(int(std.Err.Fd())) {
		in.Keys = &keys{in: std.In, out: std.Err}
		in.Terminal = term.NewTerminal(in.Keys, "")
	}
	return in
}

// keys are the keyboard and the screen. They detect Ctrl-C, which a Terminal reports like the end of the
// input, and make it possible to abandon a read.
type keys struct {
	in          io.Reader
	out         io.Writer
	interrupted bool
	over        <-chan struct{} // closed to abandon the read
	reading     chan typed      // receives the result of a running read; an abandoned read continues
	rest        []byte          // bytes that were read but not used yet
}

type typed struct {
	bytes []byte
	err   error
}

// errGivenUp is returned when a read is abandoned because no caller waits for it.
var errGivenUp = errors.New("given up")

func (k *keys) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		if k.reading == nil {
			reading := make(chan typed, 1)
			k.reading = reading
			go func() {
				buffer := make([]byte, 256)
				n, err := k.in.Read(buffer)
				reading <- typed{buffer[:n], err}
			}()
		}
		select {
		case t := <-k.reading:
			k.reading, k.rest = nil, t.bytes
			if len(t.bytes) == 0 {
				return 0, t.err
			}
		case <-k.over:
			return 0, errGivenUp
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	k.interrupted = k.interrupted || bytes.IndexByte(p[:n], 3) >= 0
	return n, nil
}

// Forget drops unread input of the terminal.
func (k *keys) Forget(f *os.File) {
	k.rest = nil
	discardTyped(f)
	select {
	case <-k.reading:
		k.reading = nil
	default:
	}
}

func (k *keys) Write(p []byte) (int, error) { return k.out.Write(p) }

// Line reads a message: one line, or several lines that were pasted at once or that end in a backslash. It
// returns io.EOF at the end of the input, errInterrupted for Ctrl-C, and, at a terminal, errGivenUp when ctx
// ends first.
func (in *Input) Line(ctx context.Context, prompt string) (string, error) {
	var lines []string
	for {
		line, pasted, err := in.one(ctx, prompt)
		if err != nil {
			if errors.Is(err, io.EOF) && len(lines) > 0 {
				return strings.Join(lines, "\n"), nil
			}
			return "", err
		}
		rest, goesOn := strings.CutSuffix(line, `\`)
		if lines = append(lines, rest); !goesOn && !pasted {
			if in.Terminal == nil {
				lines[len(lines)-1] = line
			}
			return strings.Join(lines, "\n"), nil
		}
		if pasted && goesOn {
			lines[len(lines)-1] = line
		}
		prompt = "… "
	}
}

func (in *Input) one(ctx context.Context, prompt string) (line string, pasted bool, err error) {
	if in.Terminal == nil {
		line, err := in.fromPipe()
		return line, false, err
	}
	if err := in.makeRaw(); err != nil {
		return "", false, err
	}
	defer in.Restore()
	if width, height, err := term.GetSize(int(in.Std.Err.Fd())); err == nil && width > 0 {
		_ = in.Terminal.SetSize(width, height) // a wrong size only affects the display
	}
	in.Terminal.SetPrompt(prompt)
	in.Terminal.SetBracketedPasteMode(true)
	defer func() { in.Terminal.SetBracketedPasteMode(false) }()
	in.Keys.interrupted, in.Keys.over = false, ctx.Done()
	line, err = in.Terminal.ReadLine()
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		return line, true, nil
	case errors.Is(err, io.EOF) && in.Keys.interrupted:
		err = ErrInterrupted
	case !errors.Is(err, errGivenUp):
		return line, false, err
	}
	in.Renew()
	_, failed := io.WriteString(in.Keys, "\r\n")
	return "", false, errors.Join(err, failed)
}

// Renew replaces the terminal, because a Terminal keeps a Ctrl-C and the text of its line.
func (in *Input) Renew() {
	history := in.Terminal.History
	in.Terminal = term.NewTerminal(in.Keys, "")
	in.Terminal.History = history
}

// fromPipe reads one line. The last one may have no line end.
func (in *Input) fromPipe() (string, error) {
	var line []byte
	for {
		piece, err := in.piped.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > mostLine:
			return "", fmt.Errorf("reading a line from standard input: it is longer than %d bytes", mostLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		default:
			return "", err
		}
	}
}

func (in *Input) makeRaw() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	state, err := term.MakeRaw(int(in.Std.In.Fd()))
	if err != nil {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	in.raw = state
	return nil
}

// Restore restores the state of the terminal.
func (in *Input) Restore() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.raw != nil {
		_ = term.Restore(int(in.Std.In.Fd()), in.raw) // the error cannot be shown
		in.raw = nil
	}
}

// Approver returns an approver that asks the person at the terminal, or nil without a terminal, so that calls
// that need approval are refused. It refuses calls that the person cannot approve.
func (in *Input) Approver(v *View) agent.Approver {
	if in.Terminal == nil {
		return nil
	}
	return agent.ApproverFunc(func(ctx context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		in.asking.Lock() // questions of parallel calls come one after the other
		defer in.asking.Unlock()
		if ctx.Err() != nil {
			return agent.Approval{}, context.Cause(ctx)
		}
		if len(BeyondTerminal(p.Questions())) > 0 {
			return agent.Approval{Verdict: agent.NobodyToAsk}, nil
		}
		return in.Ask(ctx, v, *p.Call, p.Questions())
	})
}

// BeyondTerminal returns the open questions that the person at the terminal cannot approve: those for people whose
// identity is verified, and gates.
func BeyondTerminal(q agent.Questions) agent.Questions {
	return lo.Filter(q.Open(), func(one agent.Question, _ int) bool {
		return !one.Admits(agent.Approval{Verdict: agent.Approve, By: Person})
	})
}

// Ask asks the person at the terminal about a call. The answer has the identity of the user of the operating system.
func (in *Input) Ask(ctx context.Context, v *View, c agent.ToolCall, q agent.Questions) (agent.Approval, error) {
	answer, err := in.askText(ctx, v, c, q)
	if err == nil {
		answer.Identity = console.IdentityName()
	}
	return answer, err
}

func (in *Input) askText(ctx context.Context, v *View, c agent.ToolCall, q agent.Questions) (agent.Approval, error) {
	if r, asks := q.Asked(); asks {
		return in.askInput(ctx, v, c, q, r)
	}
	v.question(c, q)
	in.Keys.Forget(in.Std.In) // earlier input does not answer this question
	in.Renew()
	prompt, read := "  y = yes, n = no, or say why not: ", readApproval
	if q.InDoubt() {
		prompt, read = "  y = repeat it, n = do not repeat it, e = end the run: ", repetition
	}
	text, ends, err := in.answerLine(ctx, prompt)
	if err != nil || ends {
		return agent.Approval{Verdict: agent.RejectAndEnd, By: Person, Reason: "interrupted"}, err
	}
	return read(text), nil
}

// answerLine reads a line of an answer; ends is true when the person interrupts the question and the run does not end.
func (in *Input) answerLine(ctx context.Context, prompt string) (text string, ends bool, err error) {
	text, err = in.Line(ctx, prompt)
	switch {
	case errors.Is(err, errGivenUp):
		return "", false, context.Cause(ctx)
	case errors.Is(err, ErrInterrupted): // the same as Ctrl-C outside a question
		if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(os.Interrupt) == nil {
			<-ctx.Done()
			return "", false, context.Cause(ctx)
		}
		return "", true, nil
	case err != nil && !errors.Is(err, io.EOF):
		return "", false, err
	}
	return text, false, nil
}

// Person is the name of the person at the terminal.
const Person = "the user"

// readApproval converts an answer. An empty answer rejects the call.
func readApproval(text string) agent.Approval {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "y", "yes":
		return agent.Approval{Verdict: agent.Approve, By: Person}
	case "", "n", "no":
		return agent.Approval{Verdict: agent.RejectAndEnd, By: Person}
	}
	return agent.Approval{Verdict: agent.RejectAndContinue, By: Person, Reason: text}
}

// repetition converts an answer about a call in doubt. An empty answer does not repeat the call.
func repetition(text string) agent.Approval {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "y", "yes":
		return agent.Approval{Verdict: agent.Approve, By: Person}
	case "e", "end":
		return agent.Approval{Verdict: agent.RejectAndEnd, By: Person}
	case "", "n", "no":
		text = ""
	}
	return agent.Approval{Verdict: agent.RejectAndContinue, By: Person, Reason: text}
}

var _ io.ReadWriter = (*keys)(nil)
