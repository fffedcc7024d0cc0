// Package unfiltered says of which calls the texts have yet to pass the hooks after the call, so that what a tool tells
// while it runs is told without them.
package unfiltered

import "github.com/grapnel-go/grapnel/agent"

var tools = agent.NewScratch[struct{ guarded func(tool string) bool }](nil)

// Set says how to tell, for the run of s, whether controls after a call see what a tool says.
func Set(s agent.State, guarded func(tool string) bool) { tools.Get(s).guarded = guarded }

// In reports whether the texts of a tool's calls are unfiltered while they run.
func In(s agent.State, tool string) bool {
	guarded := tools.Get(s).guarded
	return guarded != nil && guarded(tool)
}
