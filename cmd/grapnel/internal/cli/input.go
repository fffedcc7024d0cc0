package cli

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
)

// errInterrupted is returned when Ctrl-C interrupts reading a line.
var errInterrupted = errors.New("interrupted")

// mostLine is the maximum length of a line of a conversation, in bytes.
const mostLine = 1 << 20

// input reads lines from a person, with editing, history and pasting of several
// lines, or from a pipe.
type input struct {
	asking sync.Mutex // one question at a time

	std      streams
	terminal *term.Terminal // nil for a pipe
	keys     *keys
	piped    *bufio.Reader

	mu  sync.Mutex
	raw *term.State // the terminal's state before raw mode; nil when it is not in raw mode
}

func newInput(std streams) *input {
	in := &input{std: std, piped: bufio.NewReader(std.in)}
	if term.IsTerminal(int(std.in.Fd())) && term.IsTerminal(int(std.err.Fd())) {
		in.keys = &keys{in: std.in, out: std.err}
		in.terminal = term.NewTerminal(in.keys, "")
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

// forget drops unread input of the terminal.
func (k *keys) forget(f *os.File) {
	k.rest = nil
	discardTyped(f)
	select {
	case <-k.reading:
		k.reading = nil
	default:
	}
}

func (k *keys) Write(p []byte) (int, error) { return k.out.Write(p) }

// line reads a message: one line, or several lines that were pasted at once or that end in a backslash. It
// returns io.EOF at the end of the input, errInterrupted for Ctrl-C, and, at a terminal, errGivenUp when ctx
// ends first.
func (in *input) line(ctx context.Context, prompt string) (string, error) {
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
			if in.terminal == nil {
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

func (in *input) one(ctx context.Context, prompt string) (line string, pasted bool, err error) {
	if in.terminal == nil {
		line, err := in.fromPipe()
		return line, false, err
	}
	if err := in.makeRaw(); err != nil {
		return "", false, err
	}
	defer in.restore()
	if width, height, err := term.GetSize(int(in.std.err.Fd())); err == nil && width > 0 {
		_ = in.terminal.SetSize(width, height) // a wrong size only affects the display
	}
	in.terminal.SetPrompt(prompt)
	in.terminal.SetBracketedPasteMode(true)
	defer func() { in.terminal.SetBracketedPasteMode(false) }()
	in.keys.interrupted, in.keys.over = false, ctx.Done()
	line, err = in.terminal.ReadLine()
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		return line, true, nil
	case errors.Is(err, io.EOF) && in.keys.interrupted:
		err = errInterrupted
	case !errors.Is(err, errGivenUp):
		return line, false, err
	}
	in.renew()
	_, failed := io.WriteString(in.keys, "\r\n")
	return "", false, errors.Join(err, failed)
}

// renew replaces the terminal, because a Terminal keeps a Ctrl-C and the text of its line.
func (in *input) renew() {
	history := in.terminal.History
	in.terminal = term.NewTerminal(in.keys, "")
	in.terminal.History = history
}

// fromPipe reads one line. The last one may have no line end.
func (in *input) fromPipe() (string, error) {
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

func (in *input) makeRaw() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	state, err := term.MakeRaw(int(in.std.in.Fd()))
	if err != nil {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	in.raw = state
	return nil
}

// restore restores the state of the terminal.
func (in *input) restore() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.raw != nil {
		_ = term.Restore(int(in.std.in.Fd()), in.raw) // the error cannot be shown
		in.raw = nil
	}
}

// approver returns an approver that asks the person at the terminal, or nil without a terminal, so that calls
// that need approval are refused. It refuses calls that the person cannot approve.
func (in *input) approver(v *view) agent.Approver {
	if in.terminal == nil {
		return nil
	}
	return agent.ApproverFunc(func(ctx context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		in.asking.Lock() // questions of parallel calls come one after the other
		defer in.asking.Unlock()
		if ctx.Err() != nil {
			return agent.Approval{}, context.Cause(ctx)
		}
		if len(beyondTerminal(p.Questions())) > 0 {
			return agent.Approval{Verdict: agent.NobodyToAsk}, nil
		}
		return in.ask(ctx, v, *p.Call, p.Questions())
	})
}

// beyondTerminal returns the open questions that the person at the terminal cannot approve: those for people whose
// identity is verified, and gates.
func beyondTerminal(q agent.Questions) agent.Questions {
	return lo.Filter(q.Open(), func(one agent.Question, _ int) bool {
		return !one.Admits(agent.Approval{Verdict: agent.Approve, By: person})
	})
}

// ask asks the person at the terminal about a call. The answer has the identity of the user of the operating system.
func (in *input) ask(ctx context.Context, v *view, c agent.ToolCall, q agent.Questions) (agent.Approval, error) {
	answer, err := in.askText(ctx, v, c, q)
	if err == nil {
		answer.Identity = identityName()
	}
	return answer, err
}

func (in *input) askText(ctx context.Context, v *view, c agent.ToolCall, q agent.Questions) (agent.Approval, error) {
	if r, asks := q.Asked(); asks {
		return in.askInput(ctx, v, c, q, r)
	}
	v.question(c, q)
	in.keys.forget(in.std.in) // earlier input does not answer this question
	in.renew()
	prompt, read := "  y = yes, n = no, or say why not: ", readApproval
	if q.InDoubt() {
		prompt, read = "  y = repeat it, n = do not repeat it, e = end the run: ", repetition
	}
	text, ends, err := in.answerLine(ctx, prompt)
	if err != nil || ends {
		return agent.Approval{Verdict: agent.RejectAndEnd, By: person, Reason: "interrupted"}, err
	}
	return read(text), nil
}

// answerLine reads a line of an answer; ends is true when the person interrupts the question and the run does not end.
func (in *input) answerLine(ctx context.Context, prompt string) (text string, ends bool, err error) {
	text, err = in.line(ctx, prompt)
	switch {
	case errors.Is(err, errGivenUp):
		return "", false, context.Cause(ctx)
	case errors.Is(err, errInterrupted): // the same as Ctrl-C outside a question
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

// person is the name of the person at the terminal.
const person = "the user"

// readApproval converts an answer. An empty answer rejects the call.
func readApproval(text string) agent.Approval {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "y", "yes":
		return agent.Approval{Verdict: agent.Approve, By: person}
	case "", "n", "no":
		return agent.Approval{Verdict: agent.RejectAndEnd, By: person}
	}
	return agent.Approval{Verdict: agent.RejectAndContinue, By: person, Reason: text}
}

// repetition converts an answer about a call in doubt. An empty answer does not repeat the call.
func repetition(text string) agent.Approval {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "y", "yes":
		return agent.Approval{Verdict: agent.Approve, By: person}
	case "e", "end":
		return agent.Approval{Verdict: agent.RejectAndEnd, By: person}
	case "", "n", "no":
		text = ""
	}
	return agent.Approval{Verdict: agent.RejectAndContinue, By: person, Reason: text}
}

var _ io.ReadWriter = (*keys)(nil)
