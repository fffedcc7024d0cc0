package drivers

import "context"

// TokenFunc returns the token that a driver sends with a request as "Authorization: Bearer …" instead of a key. A
// driver calls it before each request, so it should cache the token until the token expires. It must be safe for
// concurrent use. When it returns an error, the driver sends nothing and returns an error of agent.KindAuth. Drivers'
// errors do not contain tokens.
//
// Cloud libraries return such tokens: azidentity for Microsoft Entra ID, golang.org/x/oauth2/google for Google Cloud.
type TokenFunc func(ctx context.Context) (string, error)

// Vertex selects Google Cloud's Vertex AI in a driver whose models Vertex AI offers. All members are required.
type Vertex struct {
	// Project is the ID of the project to charge. Location is a region such as "europe-west4", or "global", "us" or
	// "eu".
	Project, Location string
	// Token returns an OAuth access token with the scope https://www.googleapis.com/auth/cloud-platform.
	Token TokenFunc
}
