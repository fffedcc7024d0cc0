// Package redact removes secrets from tool results, so that neither the model nor anything that stores or shows the
// conversation sees them. Each secret becomes [redacted: kind].
//
//	redactor, err := redact.New(redact.Options{Literals: map[string]string{"DB_PASSWORD": os.Getenv("DB_PASSWORD")}})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(redactor.Results())).Build().Get()
//
// # Secrets
//
// The hooks treat these texts as secrets:
//
//   - your literal secrets, plain and as base64, hex, escaped for URLs and for JSON; secrets with seven bytes or more
//     also inside a longer base64 text
//   - texts in a well-known format: keys and tokens for AWS, GitHub, GitLab, Slack, OpenAI, Anthropic, Google, Stripe,
//     npm and others, private keys, JSON web tokens, passwords in URLs and Authorization headers; Kinds lists them
//   - values assigned to a name such as password, secret, token or api_key; this is a guess that also treats token =
//     nextToken in a program as a secret; Options.Without turns kinds off
//   - your own patterns' matches
//
// # Searched text
//
// Results searches every text that results from a tool call: see hooks.ToolResultContext.Filter. These are all parts of
// the result, the error, a stop's message, and the messages, context and metadata that the tool and other hooks add.
// The parts include text, names, URLs, and files and pictures that are text, in UTF-8 or according to their media type.
// In JSON text, strings are unescaped for the search and encoded again. A number becomes a string if it contains a
// literal or matches your patterns. Every other byte stays unchanged, so that valid JSON stays valid. Denied and failed
// calls' results are treated in the same way.
//
// An error that contains a secret, even only in a wrapped value such as a panic's value, is replaced with an error of
// the same kind. Controls at ToolFailed, and controls that run earlier at PostToolUse, see the original.
//
// Adjacent parts of one result are searched as one text. A secret that is split over two results is not found. Neither
// is a secret that the tool itself broke into lines, cut off, spelled out or encrypted. Progress that a tool reports
// while it runs is not searched. Replies searches the model's text, thoughts and calls, so that tools do not get the
// removed secrets. A changed thought loses its signature. A streamed reply is held back until the hook has seen all of
// it.
//
// # Cost
//
// Patterns are RE2: the time grows only with the text's length. If a rule's hint is not in the text, only the search
// for the hint takes time.
//
// # Failure and concurrency
//
// The hooks are guards: they run last, and if one fails, the result is withheld. A Redactor is immutable and can serve
// any number of runs at the same time. It never reveals a secret: Options.Told gets kinds and counts.
package redact
