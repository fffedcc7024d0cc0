package drivers

import "context"

// TokenFunc returns the token that a request is sent with, as "Authorization: Bearer …", in place of a key. A driver calls
// it before each request, so it caches the token until that expires; it is safe for concurrent use. An error is one of
// agent.KindAuth, and nothing is sent. Drivers keep tokens out of their errors.
//
// Clouds have such tokens: azidentity for Microsoft Entra ID, golang.org/x/oauth2/google for Google Cloud.
type TokenFunc func(ctx context.Context) (string, error)

// Vertex says where Google Cloud's Vertex AI is asked, for drivers of models that it offers. All members are required.
type Vertex struct {
	// Project is the id of the project that is charged, Location a region such as "europe-west4", or "global", "us" or "eu".
	Project, Location string
	// Token returns an OAuth access token with the scope https://www.googleapis.com/auth/cloud-platform.
	Token TokenFunc
}
