package service

import (
	"net/http"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
)

// What the reader of an error may do.
const (
	SayLess    = "say less, or ask a model that reads more"
	SeeBilling = "the account has no credit left or has reached its limit: see its billing page"
)

// redirects are the statuses of an answer that says where else to ask.
var redirects = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// Advice returns what to do about a refusal where that is not plain and the service's own
// words do not tell. Path is what the driver puts behind the base URL.
func Advice(e *drivers.Error, keyless bool, path string) string {
	switch {
	case e.Kind == agent.KindAuth && keyless:
		return "no key was sent: set Config.APIKey"
	case e.Kind == agent.KindAuth && e.Status == http.StatusForbidden:
		return "see what the key is allowed to do"
	case e.Kind == agent.KindAuth:
		return "see that the key is that of this service and still valid"
	case e.Kind == agent.KindContextLength:
		return SayLess
	case e.Status == http.StatusNotFound:
		return "see that the model's name is right, and that the base URL is all that stands before " + path
	case slices.Contains(redirects, e.Status):
		return "redirects are not followed, as the key would go along: make the base URL the address that it leads to"
	}
	return ""
}
