package agent

// unobserved holds the driver and executor for runs without an observer: those of the agent
// without the wrappers that only serve observers. In an agent whose telemetry is not
// collected, which is the default, these wrappers are 7 % of the instructions of a step
// (BenchmarkContender/contender=grapnel).
type unobserved struct {
	driver   Driver
	executor Executor
}

// withoutObservers returns v without the outermost wrappers that only observe.
func withoutObservers[T any](v T) T {
	for {
		onlooker, ok := any(v).(interface{ WhenUnobserved() T })
		if !ok {
			return v
		}
		v = onlooker.WhenUnobserved()
	}
}

// driverFor returns the driver for the run that s belongs to.
func (a *Agent) driverFor(s State) Driver {
	if s.Observed() {
		return a.driver
	}
	return a.unobserved.driver
}

// executorFor returns the executor for the run that s belongs to.
func (a *Agent) executorFor(s State) Executor {
	if s.Observed() {
		return a.executor
	}
	return a.unobserved.executor
}
