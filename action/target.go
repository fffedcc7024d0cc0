package action

import "path/filepath"

// TargetOf returns what an action is done with, for events and lists: the name of the agent, the pipeline or the func, the
// server and the tool, the name of the program, the host, the model, who opens a gate. Nothing of a URL but scheme and host is in
// it, and no argument of a program. It is empty where there is none.
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
