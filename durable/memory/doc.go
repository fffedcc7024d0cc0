// Package memory is a durable.Store in the memory of a process, for tests and short programs. It keeps the whole contract of
// durable.Store, except that its runs end with the process.
//
//	store := memory.New()
//	keeper := durable.Keep(store, durable.Options{})
//
// It has no limits of size, and it looks at all runs to claim one: with more than some thousand runs that have not been pruned, use
// package sqlite. Times come from time.Now, so a test with testing/synctest decides when leases expire.
package memory
