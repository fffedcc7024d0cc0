package durabletest

import "time"

// SetPatience sets how long the tests wait for something that must happen.
func SetPatience(d time.Duration) { patience = d }
