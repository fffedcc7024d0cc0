// Package runs has the commands about stored runs, of any store or coordinator.
package runs
