// Package storedruns converts runs in a store to recorded runs, so that policies can be tried on them, and decisions in
// them to test cases.
package storedruns
