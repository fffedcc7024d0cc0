// Package web serves the control room: pages on which people see what waits, what runs and what failed, why each decision
// about a run was made, and answer what runs ask.
//
//	c, err := coordinator.New(coordinator.Options{Store: store})
//	pages := web.New(web.Options{Coordinator: api.Local{Coordinator: c}, Store: store})
//	handler := api.Handler(c, api.Options{Pages: pages})
//
// Without a coordinator, there is the inbox of a store. People sign in with a token of the coordinator or of Options.People, or
// with a code that works once. All pages are complete without JavaScript; with it, they change while people look at them,
// over one stream of server-sent events a page.
//
// # Trust
//
// Text from models, tools, hooks and users is never markup: it is escaped, invisible characters are shown as escapes,
// long text is cut, and no link is made from it. The pages run one script and one style sheet, both from this server.
package web
