// Package api keeps HTTP out of the coordinator: it serves one as an API with tokens, roles and an audit log, which its OpenAPI document
// at /openapi.json describes, beside the pages where people answer.
//
//	c, err := coordinator.New(coordinator.Options{Store: store})
//	go http.ListenAndServe("127.0.0.1:8420", api.Handler(c, api.Options{Token: os.Getenv("GRAPNEL_TOKEN")}))
//
// Each file adds the routes of one part: blueprints, runs with their sessions, events, runners, tokens, the audit log, and what the store
// has for "grapnel runs --server".
package api
