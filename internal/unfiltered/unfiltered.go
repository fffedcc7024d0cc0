// Package unfiltered marks the tool calls whose results must still pass hooks after the call, so that events
// during the call omit the tool's texts.
package unfiltered

import "github.com/grapnel-go/grapnel/agent"

var tools = agent.NewScratch[struct{ guarded func(tool string) bool }](nil)

// Set sets the function that reports, for the run of s, whether controls after a call filter a tool's texts.
func Set(s agent.State, guarded func(tool string) bool) { tools.Get(s).guarded = guarded }

// In reports whether the texts of a tool's calls are unfiltered while they run.
func In(s agent.State, tool string) bool {
	guarded := tools.Get(s).guarded
	return guarded != nil && guarded(tool)
}
