package agenttest

import "time"

// SetPatience sets how long contract tests wait for an event that must happen soon.
func SetPatience(d time.Duration) { patience = d }
