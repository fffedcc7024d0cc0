// Package drivers is what the drivers of model services have in common: the
// error that tells one failure from another, and prices. The drivers themselves
// are in the packages below it, one for each service:
//
//   - openai: chat completions, at OpenAI or at any endpoint that speaks them
//   - anthropic: the Messages API
//   - gemini: the Gemini API
//   - replay: recorded transcripts, no service at all
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
// whose cost nobody knows. Give the driver a table of your own where yours are
// other prices.
package drivers
