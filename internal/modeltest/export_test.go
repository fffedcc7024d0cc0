package modeltest

import "time"

// SetPatience sets how long tests wait for what must happen soon.
func SetPatience(d time.Duration) { patience = d }
