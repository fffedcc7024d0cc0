package kit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
)

func plan(items string) agenttest.Turn { return agenttest.Call(kit.TodoTool, `{"todos":[`+items+`]}`) }

const (
	dig  = `{"content":"dig","status":"in_progress"}`
	fill = `{"content":"fill","status":"pending"}`
)

// The model writes its plan, and a program reads it.
func ExampleTodoList() {
	model := agenttest.Script(
		agenttest.Call(kit.TodoTool, `{"todos":[{"content":"dig a hole","status":"in_progress"},{"content":"fill it","status":"pending"}]}`),
		agenttest.Call(kit.TodoTool, `{"todos":[{"content":"dig a hole","status":"completed"},{"content":"fill it","status":"in_progress"}]}`),
		agenttest.Say("I have begun to fill it."),
	)
	a := builder.New().WithDriver(model).With(kit.TodoList{}).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("a hole, and back")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	for _, item := range kit.Todos(final) {
		fmt.Printf("%-12s %s\n", item.Status, item.Content)
	}
	// Output:
	// To-do list written: 0 of 2 completed, 1 in progress, 1 pending. Now: dig a hole.
	// To-do list written: 1 of 2 completed, 1 in progress, 0 pending. Now: fill it.
	// completed    dig a hole
	// in_progress  fill it
}

func TestTodosStayWithTheSession(t *testing.T) {
	a := built(t, agenttest.Script(plan(dig+","+fill), agenttest.Say("a"), agenttest.Say("b"), plan(""), agenttest.Say("c")), kit.TodoList{})
	s := through(t, done(t, a, agent.NewState(), "go"))
	want := []kit.Todo{{Content: "dig", Status: kit.TodoInProgress}, {Content: "fill", Status: kit.TodoPending}}
	assert.Equal(t, want, kit.Todos(s))
	s = through(t, done(t, a, s, "and?"))
	assert.Equal(t, want, kit.Todos(s), "another run changes nothing")
	s = done(t, a, s, "drop it")
	assert.Empty(t, kit.Todos(s))
	assert.Empty(t, kit.Todos(agent.NewState()))
}

func TestTodosAreTheCallersToKeep(t *testing.T) {
	s := done(t, built(t, agenttest.Script(plan(dig), agenttest.Say("ok")), kit.TodoList{}), agent.NewState(), "go")
	kit.Todos(s)[0].Content = "changed"
	assert.Equal(t, "dig", kit.Todos(s)[0].Content)
}

func TestTodoListThatBreaksItsFormChangesNothing(t *testing.T) {
	a := built(t, agenttest.Script(
		plan(dig), plan(`{"content":"x","status":"doing"}`), plan(`{"content":"","status":"pending"}`), plan(`{"content":"x"}`), agenttest.Say("ok"),
	), kit.TodoList{})
	s := done(t, a, agent.NewState(), "go")
	assert.Equal(t, []kit.Todo{{Content: "dig", Status: kit.TodoInProgress}}, kit.Todos(s))
	for _, r := range told(s)[1:] {
		assert.Contains(t, r, "not executed")
	}
}

// Of several writes in one step the last counts, and each answer says so.
func TestLastTodoListOfAStepWins(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		three := plan(fill).Call(kit.TodoTool, `{"todos":[]}`).Call(kit.TodoTool, `{"todos":[`+dig+`]}`)
		a, err := builder.New().WithParallel(parallel).WithDriver(agenttest.Script(three, plan(fill), agenttest.Say("ok"))).With(kit.TodoList{}).Build().Get()
		assert.NoError(t, err)
		s := done(t, a, agent.NewState(), "go")
		assert.Equal(t, []string{
			"This list is replaced by a later call of write_todos in the same turn: the last one counts.",
			"This list is replaced by a later call of write_todos in the same turn: the last one counts.",
			"To-do list written: 0 of 1 completed, 1 in progress, 0 pending. Now: dig. It takes the place of the lists written before it in the same turn: the last one counts.",
			"To-do list written: 0 of 1 completed, 0 in progress, 1 pending.",
		}, told(s))
	}
}

// A denied write replaces nothing, so no event says that it does.
func TestDeniedTodoListReplacesNone(t *testing.T) {
	second := hooks.On(hooks.AtPreToolUse, "second", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if c.Index() == 1 {
			return c.Deny("no")
		}
		return c.Allow()
	})
	a := built(t, agenttest.Script(plan(dig).Call(kit.TodoTool, `{"todos":[]}`), agenttest.Say("ok")), kit.TodoList{}, capability.UseHooks(second))
	s := done(t, a, agent.NewState(), "go")
	assert.Len(t, kit.Todos(s), 1)
	assert.Equal(t, "To-do list written: 0 of 1 completed, 1 in progress, 0 pending. Now: dig.", told(s)[0])
}

func TestTodoInstructions(t *testing.T) {
	assert.Contains(t, built(t, agenttest.Script(), capability.UseInstructions("Be kind."), kit.TodoList{}).Request().Instructions, "Be kind.\n\nYou have a to-do list")
	assert.Equal(t, "Plan.", built(t, agenttest.Script(), kit.TodoList{Instructions: "Plan."}).Request().Instructions)
}
