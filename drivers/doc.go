// Package drivers contains the common parts of the drivers of model services: their error type and prices.
// The drivers themselves are in the packages below it, one for each service:
//
//   - openai: chat completions and the Responses API, at OpenAI, at Azure or at any compatible endpoint
//   - anthropic: the Messages API, at Anthropic or at Vertex AI
//   - gemini: the Gemini API, or Vertex AI
//   - replay: recorded transcripts, without a service
//
// # Tokens
//
// For clouds that require a token instead of a key, set a TokenFunc, which the driver calls before each
// request: openai.Config.Token for Azure, and Vertex for the drivers of models that Google Cloud offers. The
// program decides how it gets its tokens; these packages do not depend on the library of a cloud.
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := gemini.New(gemini.Config{
//		Model:  "gemini-3.8-flash",
//		Vertex: &drivers.Vertex{Project: "my-project", Location: "global", Token: accessToken},
//	})
//
// # Errors
//
// A driver sends each request once. One policy for all drivers, processor.Retry around the step, decides how
// often to retry and how long to wait. It reads the *Error: its kind, whether a retry is useful, and how long
// the service asks callers to wait. When the last retry has failed, the criteria (continuation.ErrorPolicy)
// decide by the same kinds.
//
// # Prices
//
// Services report how many tokens a call used, not what it cost. Each driver contains a table of list prices
// with the day on which it was read. A model that is not in the table has no known cost, and a limit on cost
// (continuation.Cost) stops a run whose cost is unknown. If you pay other prices, give the driver your own
// table.
package drivers
