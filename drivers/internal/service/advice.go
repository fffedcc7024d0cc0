package service

import (
	"net/http"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
)

// Advice for readers of an error.
const (
	SayLess    = "send less, or use a model with a larger context"
	SeeBilling = "the account has no credit left or has reached its limit: see its billing page"
)

// redirects are the HTTP statuses that redirect a request.
var redirects = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// Advice returns what to do about an error answer if that is not obvious and the service does not say. path is the
// driver's path after the base URL.
func Advice(e *drivers.Error, keyless bool, path string) string {
	switch {
	case e.Kind == agent.KindAuth && keyless:
		return "no key was sent: set Config.APIKey, or api_key_env in the agent file"
	case e.Kind == agent.KindAuth && e.Status == http.StatusForbidden:
		return "check the permissions of the key"
	case e.Kind == agent.KindAuth:
		return "check that the key belongs to this service and is still valid"
	case e.Kind == agent.KindContextLength:
		return SayLess
	case e.Status == http.StatusNotFound:
		return "check the model's name, and that the base URL is the part of the address before " + path
	case slices.Contains(redirects, e.Status):
		return "redirects are not followed, because they would pass the key on: set the base URL to the target of the redirect"
	}
	return ""
}
