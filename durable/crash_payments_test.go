package durable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/answertest"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The crash test of payments: a run and its sub-agents pay invoices, with approvals that are given at once and approvals
// that the run parks for, with hooks that rewrite calls (some in another way in each process), with retries, parallel
// calls and a custom executor. The process is killed with SIGKILL again and again. Payments are lines of a ledger outside
// of the run. No invoice is paid twice, none is lost, the person is asked about every call in doubt, and no approval counts
// twice. "make crash" kills more than 300 such processes.

// crashPays is set in the environment of a process that pays.
const crashPays = "GRAPNEL_CRASH_PAYS"

const (
	paySteps   = 3 // of the run; each starts a sub-agent
	clerkSteps = 2
	payKills   = 8 // of one run
)

// invoices returns the invoices of a run, with the tool that pays each.
func invoices() map[string]string {
	out := map[string]string{}
	add := func(prefix string, steps int) {
		for n := range steps {
			for _, tool := range []string{"pay", "wire", "transfer"} {
				out[fmt.Sprintf("%s.%d.%s", prefix, n, tool)] = tool
			}
		}
	}
	add("boss", paySteps)
	for n := range paySteps {
		add(fmt.Sprint("task", n), clerkSteps)
	}
	return out
}

func TestCrashPaymentsSQLite(t *testing.T) {
	t.Parallel()
	crashPayments(t, max(crashCount(25)/5, 1), func(_ *testing.T, dir string) string { return filepath.Join(dir, "runs.db") })
}

func TestCrashPaymentsPostgres(t *testing.T) {
	t.Parallel()
	crashPayments(t, max(crashCount(25)/20, 1), func(t *testing.T, _ string) string { return parts.Postgres(t) })
}

// cashier is one process of the run.
type cashier struct {
	dir   string
	start string // differs from process to process
}

// tick reports progress to the process that kills this one.
func (c *cashier) tick(what string) { _, _ = os.Stdout.WriteString(what + "\n") }

func (c *cashier) note(file string, words ...string) error {
	c.tick(file)
	defer c.tick(file)
	return noteIn(c.dir, file, strings.Join(words, " "))
}

// payment is the arguments of a call that pays.
type payment struct {
	Invoice string `json:"invoice"`
	Memo    string `json:"memo,omitempty"`
}

func (c *cashier) pay(call toolexec.Call, p payment) (string, error) {
	return "paid " + p.Invoice, c.note("ledger", p.Invoice, call.IdempotencyKey(), p.Memo)
}

// transfer pays once for each idempotency key, as a bank does. At first it sometimes fails, before or after the payment.
func (c *cashier) transfer(_ context.Context, call toolexec.Call, p payment) (string, error) {
	if call.Attempt < 3 && rand.IntN(3) == 0 {
		return "", errors.New("the bank is away")
	}
	said, err := c.pay(call, p)
	if call.Attempt < 3 && rand.IntN(3) == 0 {
		return "", errors.New("the bank did not answer")
	}
	return said, err
}

// till is a custom executor, without code for approvals and calls in doubt.
type till struct{ c *cashier }

func (x till) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (x till) Execute(_ context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	var in payment
	if err := json.Unmarshal([]byte(p.Call.Arguments), &in); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	said, err := x.c.pay(toolexec.Call{ToolCall: *p.Call, State: s, Attempt: 1}, in)
	if err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	r := agent.NewResult(p)
	r.Content, r.Attempts = agent.TextContent(said), 1
	return mo.Ok(r)
}

// payCalls returns the calls of one step.
func payCalls(prefix string, n int) []agent.ToolCall {
	return lo.Map([]string{"pay", "wire", "transfer"}, func(tool string, _ int) agent.ToolCall {
		return agent.ToolCall{ID: tool, Name: tool, Arguments: fmt.Sprintf(`{"invoice":"%s.%d.%s"}`, prefix, n, tool)}
	})
}

func (c *cashier) agent(k *durable.Keeper) (*agent.Agent, error) {
	call := func(name string, run func(context.Context, toolexec.Call, payment) (string, error)) toolexec.Tool {
		return toolexec.CallFunc(agent.ToolSpec{Name: name}, run)
	}
	once := func(_ context.Context, call toolexec.Call, p payment) (string, error) { return c.pay(call, p) }
	tools := capability.UseTools(call("pay", once), call("wire", once), toolexec.WithPolicy(call("transfer", c.transfer),
		toolexec.Policy{Doubt: toolexec.DoubtRepeat, Retry: toolexec.Retry{Attempts: 5}}))
	results := capability.UseHooks(hooks.ObserveAll("results", func(_ context.Context, h hooks.Context) error {
		r, ok := h.(hooks.ToolResultContext)
		if !ok {
			return nil
		}
		invoice, _ := r.Call().Text("invoice")
		return c.note("results", lo.CoalesceOrEmpty(invoice, r.Tool()), string(r.Status()))
	}, hooks.PostToolUse))
	below := func(name string) builder.AgentBuilder {
		return builder.New().WithName(name).WithParallel(3).With(tools, results).WithDriver(agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			c.tick("model")
			if s.RunStepCount() == clerkSteps {
				return agent.Step{Message: agent.Assistant("Done.")}, nil
			}
			prefix, _, _ := strings.Cut(s.Message(0).Text(), " ")
			return agent.Step{Message: agent.Assistant("", payCalls(prefix, s.RunStepCount())...)}, nil
		}))
	}
	custom := capability.Func(func(p capability.Plan) (capability.Plan, error) { return p.WithExecutor(till{c}), nil })
	boss := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		c.tick("model")
		n := s.RunStepCount()
		if n == paySteps {
			return agent.Step{Message: agent.Assistant("All is paid.")}, nil
		}
		calls := append(payCalls("boss", n), agent.ToolCall{ID: "task", Name: "task", Arguments: fmt.Sprintf(
			`{"agent":"%s","instruction":"task%d"}`, []string{"clerk", "till"}[n%2], n)})
		return agent.Step{Message: agent.Assistant("", calls...)}, nil
	})
	return builder.New().WithName("boss").WithDriver(boss).WithParallel(2).
		With(tools, results, capability.UseHooks(c.memo(), c.guard()), capability.UseApproval(agent.ApproverFunc(c.approve)),
			capability.UseDurability{Keeper: k},
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: below("clerk")}, {Agent: below("till").With(custom)}}}).
		Build().Get()
}

// memo rewrites every call. Only "wire", whose questions are answered in another process than they are asked in, is
// rewritten in the same way each time.
func (c *cashier) memo() hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "memo", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		var in map[string]string
		if err := h.Call().Decode(&in); err != nil {
			return h.Fail(err)
		}
		switch h.Tool() {
		case "task":
			task, _, _ := strings.Cut(in["instruction"], " ")
			in["instruction"] = task + " " + c.start
		case "wire":
			in["memo"] = "stable"
		default:
			in["memo"] = c.start
		}
		return h.Rewrite(in)
	})
}

func (c *cashier) guard() hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		if h.Tool() == "transfer" {
			return h.Pass()
		}
		return h.Ask("it pays")
	})
}

// approve answers at once, or parks the run.
func (c *cashier) approve(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
	if p.Call.Name == "wire" {
		return agent.Approval{Verdict: agent.Park}, nil
	}
	return c.decide(*p.Call, p.Questions().InDoubt())
}

// decide returns the answer of the person, which depends on the ledger when a call is in doubt.
func (c *cashier) decide(call agent.ToolCall, doubt bool) (agent.Approval, error) {
	var in payment
	if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil {
		return agent.Approval{}, err
	}
	what := lo.CoalesceOrEmpty(in.Invoice, call.Name)
	if doubt {
		if err := c.note("doubts", what); err != nil {
			return agent.Approval{}, err
		}
		paid, err := os.ReadFile(filepath.Join(c.dir, "ledger"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return agent.Approval{}, err
		}
		if slices.ContainsFunc(strings.Split(string(paid), "\n"), func(line string) bool { return strings.HasPrefix(line, what+" ") }) {
			return agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "it is in the ledger"}, nil
		}
	}
	return agent.Approval{Verdict: agent.Approve, By: "ann"}, c.note("approvals", what)
}

// ticking is a store that reports each write.
type ticking struct {
	durable.Store

	c *cashier
}

func (s ticking) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	s.c.tick("append")
	defer s.c.tick("appended")
	return s.Store.Commit(ctx, l, c)
}

// paying does the work of a process that is going to be killed.
func paying(ctx context.Context, store durable.Store, dir string) error {
	c := &cashier{dir: dir, start: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())}
	k := durable.Keep(ticking{store, c}, durable.Options{})
	a, err := c.agent(k)
	if err != nil {
		return err
	}
	for {
		late := make(chan error, 1)
		go func() { late <- answertest.Repeat(ctx, store, crashRun) }()
		s, err := k.Resume(ctx, a, crashRun, durable.TakeFree).Get()
		if err := <-late; err != nil {
			return err
		}
		if errors.Is(err, durable.ErrNotBegun) {
			err = errors.Join(store.Delete(ctx, crashRun), durable.ErrNotFound)
		}
		if errors.Is(err, durable.ErrNotFound) {
			s, err = a.RunWith(ctx, agent.RunSettings{ID: crashRun}, agent.NewState(), agent.UserText("go")).Get()
		}
		if err != nil {
			return err
		}
		if err := answertest.Repeat(ctx, store, crashRun); err != nil || !s.Waiting() {
			return err
		}
		if err := c.answer(ctx, store); err != nil {
			return err
		}
		if err := answertest.Repeat(ctx, store, crashRun); err != nil {
			return err
		}
	}
}

// answer answers all open waits.
func (c *cashier) answer(ctx context.Context, store durable.Store) error {
	waits, err := store.OpenWaits(ctx, durable.WaitFilter{Run: crashRun})
	if err != nil {
		return err
	}
	for _, w := range waits {
		i, err := durable.InterventionOf(w)
		if err != nil {
			return err
		}
		a, err := c.decide(i.Call, i.Questions.InDoubt())
		if err == nil {
			err = answertest.Decide(ctx, store, w, a)
		}
		if err != nil {
			return err
		}
		c.tick("approved")
	}
	return nil
}

// payingProcess continues the run in a process of its own, and kills that process after most ticks. It returns the
// number of ticks, and whether the process ended by itself.
func payingProcess(t *testing.T, dir, at string, most int) (told int, ended bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashStore+"="+at, crashPays+"=yes")
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill() }) // SIGKILL
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if told++; told >= most {
			kill()
		}
	}
	err = cmd.Wait()
	if told >= most && err != nil && !cmd.ProcessState.Exited() {
		return told, false
	}
	require.NoError(t, err, wrong.String())
	return told, true
}

func crashPayments(t *testing.T, runs int, where func(t *testing.T, dir string) string) {
	random := crashRandom(t)
	dir := t.TempDir()
	all, ended := payingProcess(t, dir, where(t, dir), 1<<30)
	require.True(t, ended)
	var total paid
	for n := range runs {
		t.Run(fmt.Sprint(n), func(t *testing.T) { total.add(payOnce(t, random, all, where)) })
	}
	t.Logf("%d runs with %d payments each, %d SIGKILLs: %d calls in doubt, %d questions about them, %d repeated, %d of unknown outcome, %d delivered again with the same key, %d doubled, %d lost",
		runs, len(invoices()), total.kills, total.doubts, total.told, total.repeated, total.unknown, total.again, total.doubled, total.lost)
}

// paid counts the outcomes of the payments of some runs.
type paid struct{ kills, doubts, told, repeated, unknown, again, doubled, lost int }

func (p *paid) add(q paid) {
	p.kills, p.doubts, p.told, p.repeated = p.kills+q.kills, p.doubts+q.doubts, p.told+q.told, p.repeated+q.repeated
	p.unknown, p.again, p.doubled, p.lost = p.unknown+q.unknown, p.again+q.again, p.doubled+q.doubled, p.lost+q.lost
}

// payOnce kills one run again and again, and compares the ledger with the journal when the run has ended. All is the
// number of ticks of such a run.
func payOnce(t *testing.T, random *rand.Rand, all int, where func(t *testing.T, dir string) string) (p paid) {
	dir := t.TempDir()
	at := where(t, dir)
	doubted := map[string]bool{}
	for ended := false; !ended; {
		most := 1 << 30
		if p.kills < payKills {
			most = 1 + random.IntN(all/4)
		}
		if _, ended = payingProcess(t, dir, at, most); !ended {
			p.kills++
			for _, invoice := range inDoubt(t, at) {
				p.doubts++
				doubted[invoice] = true
			}
		}
	}
	store, err := openAt(t.Context(), at)
	require.NoError(t, err)
	defer store.Close()
	about, err := store.Run(t.Context(), crashRun)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCompleted, about.Status)
	entries, err := store.Entries(t.Context(), crashRun, 0)
	require.NoError(t, err)

	ledger, told, approvals := counted(t, dir, "ledger"), counted(t, dir, "doubts"), counted(t, dir, "approvals")
	payments, lines := map[string]int{}, map[string]int{}
	for line, n := range ledger {
		invoice, _, _ := strings.Cut(line, " ")
		payments[invoice] += n
		lines[invoice]++
	}
	last := lastResults(t, dir)
	for invoice, tool := range invoices() {
		p.lost += lo.Ternary(payments[invoice] == 0, 1, 0)
		switch tool {
		case "transfer":
			p.doubled += max(lines[invoice]-1, 0)
			assert.Equal(t, 1, lines[invoice], "%s was paid with one key and one set of arguments", invoice)
			p.again += max(payments[invoice]-1, 0)
		default:
			p.doubled += max(payments[invoice]-1, 0)
			assert.Equal(t, 1, payments[invoice], "%s was paid once", invoice)
			begins := lo.CountBy(entries, func(e durable.Entry) bool {
				return (e.Kind == durable.EntryCall || e.Kind == "child."+durable.EntryCall) && strings.Contains(string(e.Data), `\"invoice\":\"`+invoice+`\"`)
			})
			assert.GreaterOrEqual(t, approvals[invoice], begins, "%s began as often as it was approved", invoice)
			p.repeated += begins - 1
		}
		switch last[invoice] {
		case agent.ToolExecuted:
		case agent.ToolUnknown:
			p.unknown++
			assert.Positive(t, told[invoice], "%s has an unknown outcome: the person was told", invoice)
		default:
			assert.Fail(t, "no outcome", "%s: %q", invoice, last[invoice])
		}
	}
	assert.Len(t, payments, len(invoices()))
	for invoice := range doubted {
		assert.Positive(t, told[invoice], "%s was in doubt: the person was told", invoice)
	}
	for _, n := range told {
		p.told += n
	}
	return p
}

// inDoubt returns the invoices of the calls that the journal records as begun and not as answered, and that no key protects.
func inDoubt(t *testing.T, at string) []string {
	t.Helper()
	store, err := openAt(t.Context(), at)
	require.NoError(t, err)
	defer store.Close()
	// What the killed process has sent may still be under way: this call waits for its locks.
	_, err = store.Renew(t.Context(), durable.Lease{Run: crashRun}, time.Hour)
	require.Error(t, err)
	s, err := durable.Load(t.Context(), store, crashRun)
	if errors.Is(err, durable.ErrNotFound) || errors.Is(err, durable.ErrNotBegun) {
		return nil
	}
	require.NoError(t, err)
	var out []string
	child, _, _ := agent.Checkpoint(s).Child("task")
	for _, s := range []agent.State{s, child} {
		for _, id := range []string{"pay", "wire"} {
			if begun, _, ok := agent.Checkpoint(s).Begun(id); ok && agent.Checkpoint(s).InDoubt(id) {
				var in payment
				require.NoError(t, json.Unmarshal([]byte(begun.Arguments), &in))
				out = append(out, in.Invoice)
			}
		}
	}
	return out
}

// lastResults returns the last status of each invoice.
func lastResults(t *testing.T, dir string) map[string]agent.ToolStatus {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "results"))
	require.NoError(t, err)
	out := map[string]agent.ToolStatus{}
	for line := range strings.Lines(string(text)) {
		invoice, status, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[invoice] = agent.ToolStatus(status)
	}
	return out
}
