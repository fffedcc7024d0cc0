package runctx

import "github.com/grapnel-go/grapnel/agent"

var tools = agent.NewScratch[struct{ guarded func(tool string) bool }](nil)

// SetUnfiltered sets the function that reports, for the run of s, whether controls after a call filter a tool's
// output.
func SetUnfiltered(s agent.State, guarded func(tool string) bool) { tools.Get(s).guarded = guarded }

// IsUnfiltered reports whether a tool's output must still pass hooks after the call. Events during the call omit this
// output.
func IsUnfiltered(s agent.State, tool string) bool {
	guarded := tools.Get(s).guarded
	return guarded != nil && guarded(tool)
}
