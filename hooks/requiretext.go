package hooks

import (
	"context"
	"fmt"
	"strings"
)

// RequireText returns the func of a control at AtPreToolUse that judges one argument. body receives the text at path;
// Call.Text documents paths. If the argument is missing or is not a string, the call is denied without calling body,
// regardless of the hook's failure policy. An empty string is accepted.
//
// The func ignores the call's other arguments. The hook must match only tools that take the argument, because it denies
// every call to any other tool. With a nil body the result is nil, which is an error when the agent is built.
func RequireText(
	path string, body func(ctx context.Context, c ToolContext, text string) Result,
) func(ctx context.Context, c ToolContext) Result {
	if body == nil {
		return nil
	}
	return func(ctx context.Context, c ToolContext) Result {
		raw, found := c.Call().Argument(path)
		if !found {
			return c.Deny(fmt.Sprintf("argument %q is missing: it must be a text", path))
		}
		text, ok := c.Call().Text(path)
		if !ok {
			return c.Deny(fmt.Sprintf("argument %q is %s: it must be a text", path, jsonKind(raw)))
		}
		return body(ctx, c, text)
	}
}

// jsonKind returns the name of a value's JSON type.
func jsonKind(raw string) string {
	switch raw = strings.TrimSpace(raw); {
	case raw == "null":
		return "null"
	case strings.HasPrefix(raw, "["):
		return "a list"
	case strings.HasPrefix(raw, "{"):
		return "an object"
	case raw == "true", raw == "false":
		return "a boolean"
	}
	return "a number"
}
