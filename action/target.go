package action

import "path/filepath"

// TargetOf returns an action's target for events and lists. The target is the name of the agent, pipeline or func, the
// server and tool, the program, the host, the model, or the kind of gate. It includes only a URL's scheme and host, and
// no arguments of a program. It is empty if the action has no target.
func TargetOf(d Declared) string {
	switch d := d.(type) {
	case Command:
		if len(d.Argv) > 0 {
			return filepath.Base(d.Argv[0])
		}
	case Shell:
		return "bash"
	case HTTP:
		return hostOf(d.URL)
	case MCPTool:
		if d.Server != "" {
			return d.Server + "/" + d.Tool
		}
		return d.Tool
	case Agent:
		return d.Name
	case Spawn:
		return d.Pipeline
	case Prompt:
		return d.Model
	case Gate:
		if d.Webhook != nil {
			return hostOf(d.Webhook.URL)
		}
		return string(d.By)
	case Func:
		return d.Name
	}
	return ""
}
