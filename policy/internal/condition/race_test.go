package condition_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

func TestOneConditionServesManyRunsAtOnce(t *testing.T) {
	l := languageOf(t, condition.Options{Variables: map[string]any{"hosts": []any{"a", "b"}}})
	conditions := []*condition.Condition{
		compiled(t, l, "args.n % 2 == 0 && args.h in vars.hosts"),
		compiled(t, l, "args.l.exists(x, x == args.n) && shell.clear('ls ' + string(args.n))"),
		compiled(t, l, "path.within('a/b', workspace) && glob(tool, 'ba*') && calls('x') == 0"),
	}
	shared := callOf(t, `{"n":4,"h":"a","l":[1,4]}`)
	var group sync.WaitGroup
	for run := range 2000 {
		group.Go(func() {
			for i, c := range conditions {
				yes, err := c.Test(t.Context(), callOf(t, fmt.Sprintf(`{"n":%d,"h":"a","l":[%d]}`, run, run)))
				assert.NoError(t, err)
				assert.Equal(t, i != 0 || run%2 == 0, yes)
				yes, err = c.Test(t.Context(), shared)
				assert.NoError(t, err)
				assert.True(t, yes)
			}
			if run%200 == 0 {
				assert.NotEmpty(t, conditions[1].Explain(t.Context(), shared))
				_, err := l.Compile("args.n == 1", "PostToolUse")
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
}
