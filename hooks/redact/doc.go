// Package redact removes secrets from the results of tools, so that neither the model nor anything that stores or shows the
// conversation sees them: each secret becomes [redacted: kind].
//
//	redactor, err := redact.New(redact.Options{Literals: map[string]string{"DB_PASSWORD": os.Getenv("DB_PASSWORD")}})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(redactor.Results())).Build().Get()
//
// # What is a secret
//
// Your literal secrets: plain and encoded as base64, as hex, for URLs and for JSON; literals of seven bytes and more
// are also found inside a longer base64 text. Texts with a well-known form: keys and tokens of AWS, GitHub, GitLab,
// Slack, OpenAI, Anthropic, Google, Stripe, npm and others, private keys, JSON web tokens, passwords in URLs and
// Authorization headers; Kinds lists them. Values assigned to a name such as password, secret, token or api_key: this
// is a guess, which also treats token = nextToken in a program as a secret; Options.Without turns kinds off. And the
// matches of your own patterns.
//
// # Where it looks
//
// The hook searches every text that results from a tool call, as hooks.ToolResultContext.Filter describes: all parts
// of the result (text; files and pictures that are text, either in UTF-8 or according to their media type; their
// names; URLs), the error, the message of a stop, and the messages, context and metadata that the tool and other
// hooks add. In a text that is JSON, strings are unescaped for the search and encoded again, and a number becomes a
// string if it contains a literal or a match of your patterns; every other byte stays, so that valid JSON stays
// valid. The results of denied and failed calls are treated the same.
//
// An error that contains a secret, even only in a wrapped value such as that of a panic, is replaced; its kind stays.
// Controls at ToolFailed, and those that run earlier at PostToolUse, see the original.
//
// Adjacent parts of one result are searched as one text. A secret that is split over two results is not found, nor is one
// that the tool itself broke into lines, cut off, spelled out or encrypted. The progress that a tool reports while it runs
// is not searched. Replies searches the texts, thoughts and calls of the model, so that tools do not get the removed
// secrets. A changed thought loses its signature. A streamed reply is held back until the hook has seen all of it.
//
// # Cost
//
// Patterns are RE2, so the time depends only on the length of the text, linearly. A rule whose hint is not in the
// text costs only the search for the hint.
//
// # Failure and concurrency
//
// The hooks are guards: they run last, and if one fails, the result is withheld. A Redactor is immutable and serves any
// number of runs at once. It never reveals a secret: Options.Told gets kinds and counts.
package redact
