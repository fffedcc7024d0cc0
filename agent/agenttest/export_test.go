package agenttest

import "time"

// SetPatience sets how long contract tests wait for what must happen soon.
func SetPatience(d time.Duration) { patience = d }
