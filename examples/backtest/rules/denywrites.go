package rules

import "fmt"

// DenyWrites allows the tools of the suite that only read, and denies all other tools, including unknown ones. It
// returns an error if the facts have no list for the suite.
func DenyWrites(facts Facts, suite string) (Rule, error) {
	readOnly := facts.ReadOnly[suite]
	if len(readOnly) == 0 {
		return nil, fmt.Errorf("deny-writes: the facts do not say which tools of suite %q only read", suite)
	}
	return func(tool string, _ Args) (bool, string) {
		if readOnly.Has(tool) {
			return false, ""
		}
		return true, fmt.Sprintf("%q is not one of the tools that only read", tool)
	}, nil
}
