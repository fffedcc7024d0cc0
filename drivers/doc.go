// Package drivers contains the common parts of model service drivers: the error type and prices. The drivers themselves
// are in the packages below it, one for each service:
//
//   - openai: chat completions and the Responses API, at OpenAI, at Azure or at any compatible endpoint
//   - anthropic: the Messages API, at Anthropic or at Vertex AI
//   - gemini: the Gemini API, or Vertex AI
//   - replay: recorded transcripts, without a service
//
// # Tokens
//
// For clouds that require a token instead of a key, set a TokenFunc: openai.Config.Token for Azure, and Vertex for
// models that Google Cloud offers. The driver calls it before each request. The program decides how it gets its tokens.
// These packages do not depend on a cloud's library.
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := gemini.New(gemini.Config{
//		Model:  "gemini-3.8-flash",
//		Vertex: &drivers.Vertex{Project: "my-project", Location: "global", Token: accessToken},
//	})
//
// # Errors
//
// A driver sends each request once. One policy for all drivers, processor.Retry around the step, decides how often to
// retry and how long to wait. It reads the *Error: its kind, whether a retry is useful, and how long the service asks
// callers to wait. After the last retry, the criteria (continuation.ErrorPolicy) decide by the same kinds.
//
// # Prices
//
// Services report a call's tokens, not its cost. Each driver contains a table of list prices with the date on which it
// was read. The cost is unknown for a model that is not in the table. A cost limit (continuation.Cost) stops a run
// whose cost is unknown. If you pay other prices, give the driver your own table.
package drivers
