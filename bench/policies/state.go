package policies

import (
	"context"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
)

// underWay is the state of a running run, as hooks see it. Creating it is not part of loading rules.
var underWay = sync.OnceValue(func() agent.State {
	var s agent.State
	driver := agent.DriverFunc(func(_ context.Context, now agent.State) (agent.Step, error) {
		s = now
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	agent.New(agent.Config{Driver: driver}).MustGet().Run(context.Background(), agent.NewState(), agent.UserText("go")).MustGet()
	return s
})
