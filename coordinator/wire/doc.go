// Package wire keeps clients and runners light: it has the requests and responses of a coordinator's API as plain types, so that they import
// neither the coordinator nor its server. Packages coordinator/client and coordinator/api send and serve them.
package wire
