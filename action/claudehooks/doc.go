// Package claudehooks runs hooks that were written for Claude Code, from its settings files and plugins, with their scripts
// unchanged.
//
//	set, err := claudehooks.Load([]string{".claude/settings.json"}, claudehooks.Options{})
//	if err != nil {
//		return err
//	}
//	defer set.Close(ctx)
//	for _, w := range set.Warnings() {
//		log.Print(w)
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...), set).Build().Get()
//
// # Events
//
// Handlers run at SessionStart, SessionEnd, UserPromptSubmit, PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch,
// PermissionRequest, Notification, Stop, StopFailure, SubagentStart, SubagentStop, PreCompact and PostCompact. Load returns a
// warning for each other event, because its handlers never run. Handlers of type agent are refused.
//
// Scripts see Claude Code's tools and keys: bash is Bash, read_file is Read with an absolute file_path. Other tools keep their
// names. A run without an agent.Session is a session of its own. transcript_path is a file in Claude Code's form in a folder
// that only the user can read; Close removes it.
//
// # Decisions
//
// All matching handlers of an event start together. A handler's allow does not skip other hooks and approvals. When a
// handler rewrites a call, the others are asked about the rewrite, in configuration order. Each handler can rewrite a call
// once, and the call runs only if none denies its final arguments.
//
// # Failures
//
// A handler that cannot decide blocks: exit codes other than 0 and 2, invalid JSON, an HTTP error, a time limit. It does what
// exit code 2 would do at that event. With onFailure "continue", or with Options.Compat, the action goes on, as in Claude Code.
// A handler's time limit ends all processes of its group. A process that it leaves behind when it exits in time goes on.
//
// # Trust
//
// A settings file in a repository runs programs. Options.Trusted decides on each such file by a digest of the file and the
// scripts that its commands name. A script that changes after Load does not run any more.
package claudehooks
