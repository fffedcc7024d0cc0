package kit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/toolexec"
)

// TodoTool is the name of the tool that TodoList adds.
const TodoTool = "write_todos"

// TodoList gives the model a tool to write its plan with, and instructions for using it. Each write replaces the whole
// list. An invalid write changes nothing. If a step has several writes, only the last one takes effect, and the model
// is told so.
//
// The list belongs to the session: it is kept from run to run and in JSON, and Todos returns it. The rule that one item
// at a time is in progress is advice for the model and not enforced.
type TodoList struct {
	// Instructions are added to the system prompt. Empty means this package's instructions.
	Instructions string
}

// A Todo is one item of the list.
type Todo struct {
	Content string     `json:"content"`
	Status  TodoStatus `json:"status"`
}

// TodoStatus is an item's status.
type TodoStatus string

// The item statuses.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
)

var todos = agent.ReservedKey[[]Todo](reserved.InternalToken(), "kit.todos", agent.ScopeSession)

// Todos returns the list as the model last wrote it, in its order, or nil when there is none. The caller may keep and
// modify the slice.
func Todos(s agent.State) []Todo { return slices.Clone(todos.Or(s, nil)) }

// Name returns "todo-list".
func (TodoList) Name() string { return "todo-list" }

// Install adds the tool, the instructions, and the wrapper that determines the last write.
func (t TodoList) Install(p capability.Plan) mo.Result[capability.Plan] {
	list := todoList{agent.NewScratch[writes](nil)}
	tool := toolexec.WithPolicy(toolexec.CallFunc(todoSpec, list.write), toolexec.Policy{Doubt: toolexec.DoubtRepeat})
	p = p.WithTools(tool).WrapExecutor(capability.Outside, t.Name(), list.wrap)
	return capability.UseInstructions(cmp.Or(t.Instructions, todoInstructions)).Install(p)
}

const todoInstructions = "You have a to-do list, which you write with the tool " + TodoTool + ".\n" +
	"Use it for work of three steps or more: write the plan down before you begin, set an item to in_progress when you begin with " +
	"it and to completed as soon as it is done, one at a time, and change the list when the plan changes. Have exactly one item in " +
	"progress while there is work left. Do not use it for what is done in one or two steps.\n" +
	"Each call replaces the whole list, so call it once in a turn, with all items in it."

// todoSpec limits the list, because every stored state includes it.
var todoSpec = agent.ToolSpec{
	Name:        TodoTool,
	Purpose:     &agent.Purpose{Effects: []string{"writes"}, Roles: map[string]string{"todos": "content"}},
	Description: "Writes your to-do list: all of it, in the place of what was there. An empty list is none.",
	Parameters: `{"type":"object","properties":{"todos":{"type":"array","maxItems":100,"description":"all items, in order",` +
		`"items":{"type":"object","properties":{` +
		`"content":{"type":"string","minLength":1,"maxLength":1000,"description":"what is to be done"},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed"]}},` +
		`"required":["content","status"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`,
}

type todoArgs struct {
	Todos []Todo `json:"todos"`
}

// todoList is one agent's list.
type todoList struct{ writes *agent.Scratch[writes] }

// writes are the current step's writes that are to run.
type writes struct {
	mu sync.Mutex
	booked
}

// other reports whether the step has a write at a position for which place returns true.
func (w *writes) other(place func(at int) bool) bool { return lo.SomeBy(lo.Keys(w.calls), place) }

func (l todoList) write(_ context.Context, c toolexec.Call, in todoArgs) (toolexec.Output, error) {
	text := summarizeList(in.Todos)
	w := l.writes.Get(c.State)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.other(func(at int) bool { return at > c.Index }):
		text = "This list is replaced by a later call of " + TodoTool + " in the same turn: the last one counts."
	case w.other(func(at int) bool { return at < c.Index }):
		text += " It takes the place of the lists written before it in the same turn: the last one counts."
	}
	out := toolexec.TextOutput(text)
	out.Effects = agent.EffectsOf(todos.Set(in.Todos))
	return out, nil
}

// summarizeList describes the list's progress.
func summarizeList(list []Todo) string {
	if len(list) == 0 {
		return "The to-do list is empty now."
	}
	count := lo.CountValuesBy(list, func(t Todo) TodoStatus { return t.Status })
	text := fmt.Sprintf("To-do list written: %d of %d completed, %d in progress, %d pending.",
		count[TodoCompleted], len(list), count[TodoInProgress], count[TodoPending])
	now := lo.FilterMap(list, func(t Todo, _ int) (string, bool) { return t.Content, t.Status == TodoInProgress })
	if len(now) > 0 {
		text += " Now: " + strings.Join(now, "; ") + "."
	}
	return text
}

func (l todoList) wrap(inner agent.Executor) agent.Executor { return noting{inner, l.writes} }

// noting records which of a step's writes are to run, before any of them runs.
type noting struct {
	agent.Executor
	writes *agent.Scratch[writes]
}

func (x noting) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.Executor.Prepare(ctx, s, c)
	if c.Name != TodoTool {
		return result
	}
	w := x.writes.Get(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(s, c)
	if p, err := result.Get(); err == nil && p != nil && p.Disposition == agent.DisposeRun {
		w.add(c)
	}
	return result
}
