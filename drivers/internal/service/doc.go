// Package service contains code that model service drivers share: a service's address and key, the HTTP client, the
// conversion of error answers, the removal of secrets from errors, and formats that several services use.
package service
