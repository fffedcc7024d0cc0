package agent

// unobserved holds what is asked in runs without an observer: driver and executor without
// the wrappers that only tell observers. In an agent with telemetry that has nowhere to go, as
// is the default, these wrappers are 7 % of the instructions of a step
// (BenchmarkContender/contender=grapnel).
type unobserved struct {
	driver   Driver
	executor Executor
}

// withoutObservers returns v without the wrappers that only look on, as far as they are
// outermost.
func withoutObservers[T any](v T) T {
	for {
		onlooker, ok := any(v).(interface{ WhenUnobserved() T })
		if !ok {
			return v
		}
		v = onlooker.WhenUnobserved()
	}
}

// driverFor returns the driver that is asked in the run that s belongs to.
func (a *Agent) driverFor(s State) Driver {
	if s.Observed() {
		return a.driver
	}
	return a.unobserved.driver
}

// executorFor returns the executor of the run that s belongs to.
func (a *Agent) executorFor(s State) Executor {
	if s.Observed() {
		return a.executor
	}
	return a.unobserved.executor
}
