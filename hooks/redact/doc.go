// Package redact keeps secrets in the results of tools from the model, and from everything that stores or shows what
// the model was told: they are replaced by [redacted: kind] before anything has seen them.
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
// The literal ones that you give, as they are and as base64 (those of seven bytes and more also inside of a longer base64
// text), hex, escaped for URLs and for JSON. What has a well-known form: keys and tokens of AWS, GitHub, GitLab, Slack, OpenAI, Anthropic, Google,
// Stripe, npm and others, private keys, JSON web tokens, passwords in URLs and Authorization headers; Kinds lists them.
// What is set to something called password, secret, token, api_key and the like: that is a guess, which takes
// token = nextToken in a program for a secret, too; Options.Without turns kinds off. And what your own patterns match.
//
// # Where it looks
//
// In every text that a tool call leaves, as hooks.ToolResultContext.Filter says: all parts of the result (text, files and
// pictures that are text, in UTF-8 or called so by their media type, their names, and URLs), the error, the message of a
// stop, and the messages, context and metadata that the tool and other hooks add. In a text that is JSON, strings are
// read before they are looked at and written as JSON again, and a number becomes a string if it has a literal or what
// matches one of your patterns; all else stays as it is to the byte, so that what was valid stays valid. Denied and
// failed calls have results, too, and these are treated alike.
//
// An error in which a secret was found, be it only in what it holds, as that of a panic may, is replaced; its kind stays.
// Controls at ToolFailed, and those at PostToolUse that are asked earlier, see it all as it was.
//
// Parts of one result that are shown as one are looked at as one; half a secret in one result and half in the next is not
// found, nor is one that the tool itself broke into lines, cut off, spelled out or encrypted. What a tool tells while it
// runs is not looked at. Replies looks at what the model says, thinks and calls: a tool does not get what was taken out.
// A thought that was changed goes without its signature. Where a reply is streamed, it is held back until that hook has seen
// all of it.
//
// # Cost
//
// Patterns are RE2: the time grows with the length of the text and with nothing else. Rules whose hint is not in the
// text cost a search for it.
//
// # Failure and concurrency
//
// The hooks are guards: they speak last, and should one fail, the result is withheld. A Redactor does not change and
// serves any number of runs at once. It never tells a secret: Options.Told is given kinds and numbers.
package redact
