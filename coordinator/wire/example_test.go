package wire_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// A program reads what GET /runs/{id} has returned.
func Example() {
	response := `{"run_id": "run_1", "agent_name": "report", "status": "failed", "blocked": true, "hooks": [
		{"event_type": "hook_blocked", "hook": "/RunStart-1", "hook_type": "on_run_start", "target_type": "func", "target_name": "closed",
			"block_reason": "May is closed"}]}`
	var d wire.RunDetail
	if err := json.Unmarshal([]byte(response), &d); err != nil {
		panic(err)
	}
	for _, h := range d.Hooks {
		if h.EventType == wire.EventHookBlocked {
			fmt.Println(d.AgentName, "was blocked by the", h.Title()+":", h.BlockReason)
		}
	}
	// Output:
	// report was blocked by the on_run_start hook (func closed): May is closed
}
