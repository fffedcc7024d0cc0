package telemetry

// The buckets from the conventions, and additional ones for hooks, because most hooks take microseconds.
var (
	secondBuckets   = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	agentBuckets    = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	approvalBuckets = []float64{1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 259200, 604800} // up to a week
	hookBuckets     = []float64{0.000001, 0.00001, 0.0001, 0.001, 0.01, 0.1, 1, 10, 60, 600}
)
