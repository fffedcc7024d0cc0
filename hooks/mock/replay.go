package mock

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Player answers calls from a recording. Create one with Replay. It is safe for concurrent use.
type Player struct {
	options   Options
	recording *Recording
	ofRun     *agent.Scratch[played]

	mu   sync.Mutex
	uses []int // for each line in the recording
}

// played counts the answers to each call in the session.
type played struct{ calls map[key]int }

// Replay returns a player for a recording.
func Replay(recording *Recording, o Options) *Player {
	return &Player{options: o, recording: recording, uses: make([]int, recording.Len()), ofRun: agent.NewScratch[played](nil)}
}

// Hook returns the control at PreToolUse that answers.
func (p *Player) Hook() hooks.Hook {
	longest := time.Duration(0)
	if p.options.Timed {
		for _, answers := range p.recording.answers {
			for _, a := range answers {
				longest = max(longest, a.reply.latency)
			}
		}
	}
	return p.options.newHook(p, longest, p.find, p.denial)
}

func (p *Player) find(c hooks.ToolContext) (_ reply, undo func(), found bool) {
	k, err := keyOf(c.Tool(), c.Call().Arguments)
	if err != nil { // such a call does not reach hooks
		return reply{}, func() {}, false
	}
	calls := p.calls(c.State())
	answers := p.recording.answers[k]
	if calls[k] >= len(answers) {
		return reply{}, func() {}, false
	}
	a := answers[calls[k]]
	use := func(times int) {
		calls[k] += times
		p.mu.Lock()
		defer p.mu.Unlock()
		p.uses[a.entry] += times
	}
	use(1)
	if !p.options.Timed {
		a.reply.latency = 0
	}
	return a.reply, func() { use(-1) }, true
}

// calls returns how often each call was answered so far. The state supplies earlier runs' counts.
func (p *Player) calls(s agent.State) map[key]int {
	ofRun := p.ofRun.Get(s)
	if ofRun.calls == nil {
		ofRun.calls = map[key]int{}
		name := cmp.Or(p.options.Name, "mock")
		for _, step := range s.Steps() {
			for _, r := range step.Results() {
				call := r.Call()
				if k, err := keyOf(call.Name, call.Arguments); err == nil && r.Mocked() && r.DecidedBy == name {
					ofRun.calls[k]++
				}
			}
		}
	}
	return ofRun.calls
}

func (p *Player) denial(c hooks.ToolContext) string {
	k, err := keyOf(c.Tool(), c.Call().Arguments)
	if n := len(p.recording.answers[k]); err == nil && n > 0 {
		return fmt.Sprintf("the recording %s has only %d answers of %s to these arguments: %s",
			p.recording.name, n, c.Tool(), k.arguments)
	}
	return fmt.Sprintf("the recording %s has no answer of %s to these arguments: %s", p.recording.name, c.Tool(), c.Call().Arguments)
}

// UnplayedLines returns the recording's lines that were never played, as file:line and call.
func (p *Player) UnplayedLines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lo.FilterMap(p.recording.lines, func(e entry, i int) (string, bool) {
		return fmt.Sprintf("%s:%d: %s %s, occurrence %d", p.recording.name, e.line, e.key.tool, e.key.arguments, e.occurrence), p.uses[i] == 0
	})
}
