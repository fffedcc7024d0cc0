// Package service contains code that only the drivers of model services share: the address of a service and
// the key for it, the HTTP client, the conversion of error answers, the removal of secrets from errors, and
// formats that several services use.
package service
