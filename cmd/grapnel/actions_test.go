//go:build unix

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an action of a rule did is written down before its process is killed: it is not done again, unless the operator says
// so. What was under way is, with the same key.
//
// AP-60, AP-61, AP-62
func TestKilledAfterAnAction(t *testing.T) {
	t.Parallel()
	const rules = `policy: rules
hooks:
  PreToolUse:
    - {id: done, type: shell, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY" >> done.txt; echo "{\"decision\": \"allow\"}"'}
    - {id: slow, type: shell, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY" >> slow.txt; test -e on || { echo $$ > begun; sleep 60; }'}
`
	for name, flags := range map[string][]string{"resume": nil, "redo": {"--redo-actions"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := command(t, modelOf(t, asking), "run", "--durable", "--tool", "shell", "--policy", "rules.yaml", "go")
			p.write("rules.yaml", rules)
			p.cmd.Stdout, p.cmd.Stderr = p, p
			require.NoError(t, p.cmd.Start())
			killAtWork(t, p)
			p.write("on", "")

			q := p.next(append([]string{"runs", "resume", "run_"}, flags...)...)
			require.Equal(t, 0, q.run(), q.written())
			assert.Contains(t, q.written(), "All right.")
			assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
			done, slow := strings.Fields(p.read("done.txt")), strings.Fields(p.read("slow.txt"))
			require.Len(t, slow, 2)
			assert.Equal(t, slow[0], slow[1])
			require.Len(t, done, 1+len(flags))
			assert.Equal(t, done[0], done[len(flags)])
			assert.NotEqual(t, done[0], slow[0])

			q = p.next("runs", "show", "run_", "--journal")
			require.Equal(t, 0, q.run(), q.written())
			assert.Contains(t, q.written(), `done action PreToolUse rules/done step 0 call "call_1" `)
		})
	}
}

// A run that was killed before its input was let in, in an action that was asked first, is told of and done with.
func TestKilledInAnActionBeforeTheInput(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, asking), "run", "--durable", "--tool", "shell", "--policy", "rules.yaml", "go")
	p.write("rules.yaml", `policy: rules
hooks:
  InputSubmitted:
    - {id: slow, type: shell, command: 'echo $$ > begun; sleep 60'}
`)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	killAtWork(t, p)
	q := p.next("runs", "resume", "run_")
	assert.Equal(t, 1, q.run())
	assert.Contains(t, q.written(), "the run was interrupted before its input was accepted: start it again")
	q = p.next("runs", "resume", "--all")
	require.Equal(t, 0, q.run())
	assert.Contains(t, q.written(), "There is nothing to resume.")
}

// userPolicy returns where the program has the policy of its user.
func (p *program) userPolicy() string {
	if runtime.GOOS == "darwin" {
		return filepath.Join("Library", "Application Support", "grapnel", "policy.yaml")
	}
	return filepath.Join(".config", "grapnel", "policy.yaml")
}

// owns writes the policy of the user; removes it where there is none.
func (p *program) owns(text string) {
	p.t.Helper()
	path := filepath.Join(p.cmd.Dir, p.userPolicy())
	if text == "" {
		require.NoError(p.t, os.Remove(path))
		return
	}
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	p.write(p.userPolicy(), text)
}

const (
	// asks parks the run at its call, denies is a rule of a user.
	asks = `policy: asks
hooks:
  PreToolUse: [{id: ask, decision: ask, reason: it makes files}]
`
	denies = `policy: user
required: true
hooks:
  PreToolUse: [{id: no, decision: deny, reason: not today}]
`
)

// parkedWith returns a run that waits for approval of its call, begun under a policy of the user.
func parkedWith(t *testing.T, user string) *program {
	t.Helper()
	p := command(t, modelOf(t, asking), "run", "--durable", "--tool", "shell", "--policy", "asks.yaml", "go")
	p.write("asks.yaml", asks)
	if user != "" {
		p.owns(user)
	}
	require.Equal(t, 6, p.run(), p.written())
	return p
}

// A run that is resumed is judged by the policy of its user as it is today, and by those of its own as they were.
//
// LH-23
func TestAPolicyOfTheUserHoldsAsItIs(t *testing.T) {
	t.Parallel()
	const other = `policy: user
hooks:
  PreToolUse: [{id: never, match: {tool: none}, decision: deny, reason: never}]
`
	t.Run("what it says now", func(t *testing.T) {
		t.Parallel()
		p := parkedWith(t, other)
		p.owns(denies)
		p.write("asks.yaml", strings.ReplaceAll(asks, "ask,", "changed,")) // which is not looked at
		q := p.next("runs", "approve", "run_", p.card("run_"))
		require.Equal(t, 0, q.run(), q.written())
		assert.Contains(t, q.written(), "Your own policy has changed since the run began: it applies as it is now.")
		assert.Contains(t, q.written(), "asks.yaml has changed since the run began: it continues with the original.")
		assert.Contains(t, q.written(), "user/no denies the call: not today")
		assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	})
	t.Run("what it says no more", func(t *testing.T) {
		t.Parallel()
		twice := strings.ReplaceAll(denies, "{id: no,", "{id: no, match: {args: {command: '/twice/'}},")
		for name, now := range map[string]string{"the same": twice, "changed": other, "gone": ""} {
			p := command(t, modelOf(t, slow), "run", "--durable", "--tool", "shell", "go")
			p.owns(twice)
			p.cmd.Stdout, p.cmd.Stderr = p, p
			require.NoError(t, p.cmd.Start())
			p.waitFor("begun")
			p.signal(syscall.SIGTERM)
			p.expect("Suspending: ")
			p.write("on", "")
			require.Equal(t, 7, p.code(), p.written())
			p.owns(now)
			q := p.next("runs", "resume", "run_")
			require.Equal(t, 0, q.run(), q.written())
			if now == twice {
				assert.NotContains(t, q.written(), "Your own policy has changed")
				assert.Equal(t, "once\n", p.read("made.txt"))
				continue
			}
			assert.Contains(t, q.written(), "Your own policy has changed", name)
			assert.Equal(t, "once\ntwice\n", p.read("made.txt"), name)
		}
	})
	t.Run("what was not there", func(t *testing.T) {
		t.Parallel()
		p := parkedWith(t, "")
		p.owns(denies)
		q := p.next("runs", "approve", "run_", p.card("run_"))
		require.Equal(t, 0, q.run(), q.written())
		assert.Contains(t, q.written(), "user/no denies the call: not today")
	})
	t.Run("what makes no sense", func(t *testing.T) {
		t.Parallel()
		p := parkedWith(t, other)
		p.owns(strings.ReplaceAll(denies, "PreToolUse", "PreTolUse"))
		q := p.next("runs", "approve", "run_", p.card("run_"))
		assert.Equal(t, 2, q.run())
		assert.Contains(t, q.written(), `policy.yaml:4:3: unknown point of a policy "PreTolUse"`)
		q = p.next("run", "--tool", "shell", "go")
		assert.Equal(t, 2, q.run(), "and no run begins under it")
		assert.Contains(t, q.written(), `unknown point of a policy "PreTolUse"`)
		assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
		p.owns(other) // the run waits for an operator to mend it
		q = p.next("runs", "resume", "run_")
		require.Equal(t, 0, q.run(), q.written())
		assert.FileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	})
}

// Who starts a run can neither put rules in the place of the user's, under their name, nor switch off what is required.
// The same policy twice is one: at the begin, and when the run is resumed after it has changed.
//
// LH-23
func TestAPolicyOfTheUserIsNotReplaced(t *testing.T) {
	t.Parallel()
	t.Run("another of its name", func(t *testing.T) {
		t.Parallel()
		p := command(t, modelOf(t, asking), "run", "--tool", "shell", "--policy", "mine.yaml", "go")
		p.owns(denies)
		p.write("mine.yaml", strings.ReplaceAll(denies, "decision: deny, reason: not today", "decision: allow"))
		assert.Equal(t, 2, p.run())
		assert.Contains(t, p.written(), `the policy "user" is declared twice`)
	})
	t.Run("a switch", func(t *testing.T) {
		t.Parallel()
		p := command(t, modelOf(t, asking), "run", "--tool", "shell", "--policy", "mine.yaml", "go")
		p.owns(denies)
		p.write("mine.yaml", "disable_global_hooks: true\n"+asks)
		assert.Equal(t, 0, p.run(), p.written())
		assert.Contains(t, p.written(), "user/no denies the call: not today")
	})
	t.Run("the same", func(t *testing.T) {
		t.Parallel()
		p := command(t, modelOf(t, asking), "")
		p.owns(asks)
		p.write("copy.yaml", asks)
		q := p.next("run", "--durable", "--tool", "shell", "--policy", "copy.yaml", "--policy", "copy.yaml", "--policy", p.userPolicy(), "go")
		require.Equal(t, 6, q.run(), q.written())
		assert.Contains(t, q.written(), "In force: asks: 1 rule")
	})
	t.Run("the same, and changed", func(t *testing.T) {
		t.Parallel()
		p := command(t, modelOf(t, asking), "")
		p.owns(asks)
		q := p.next("run", "--durable", "--tool", "shell", "--policy", p.userPolicy(), "go")
		require.Equal(t, 6, q.run(), q.written())
		p.owns(strings.ReplaceAll(asks, "decision: ask", "decision: deny"))
		q = p.next("runs", "approve", "run_", p.card("run_"))
		require.Equal(t, 0, q.run(), q.written())
		assert.Contains(t, q.written(), "asks/ask denies the call: it makes files")
		assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	})
}
