// Package drivers contains the common parts of the drivers of model services: the
// error that tells one failure from another, and prices. The drivers themselves
// are in the packages below it, one for each service:
//
//   - openai: chat completions and the Responses API, at OpenAI, at Azure or at any endpoint that speaks them
//   - anthropic: the Messages API, at Anthropic or at Vertex AI
//   - gemini: the Gemini API, or Vertex AI
//   - replay: recorded transcripts, no service at all
//
// # Tokens
//
// Clouds that want a token in the place of a key get one from a TokenFunc, which is called before each
// request: openai.Config.Token for Azure, and Vertex for the drivers of models that Google Cloud offers. How
// a program gets its tokens is its own choice; these packages need no library of a cloud.
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := gemini.New(gemini.Config{
//		Model:  "gemini-3.8-flash",
//		Vertex: &drivers.Vertex{Project: "my-project", Location: "global", Token: accessToken},
//	})
//
// # Errors
//
// A driver never tries twice: how often, and how long to wait, is one policy for
// all, processor.Retry around the step. It reads what an *Error says of itself:
// its kind, whether another attempt is of use, and how long the service wants to
// be left alone. What is to be done when an attempt too many has failed is up to
// the criteria (continuation.ErrorPolicy), by the same kinds.
//
// # Prices
//
// Services tell how many tokens were used, not what they cost. Each driver ships
// a table of list prices with the day on which it was read. A model that is not in
// the table has no known cost, and a limit on cost (continuation.Cost) stops a run
// whose cost is unknown. Give the driver a table of your own where yours are
// other prices.
package drivers
