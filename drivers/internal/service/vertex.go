package service

import (
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/internal/lazy"
)

// Valid names in a Vertex AI address. A location is part of the host that gets the token.
var (
	vertexProject  = lazy.Regexp(`^[a-z0-9][a-z0-9.:-]*$`)
	vertexLocation = lazy.Regexp(`^[a-z0-9-]+$`)
)

// checkVertex joins all mistakes in v.
func checkVertex(v drivers.Vertex) error {
	var errs []error
	if !vertexProject().MatchString(v.Project) {
		errs = append(errs, fmt.Errorf("the project %q is not the id of a Google Cloud project: set Vertex.Project", v.Project))
	}
	if !vertexLocation().MatchString(v.Location) {
		errs = append(errs, fmt.Errorf("the location %q is not a location of Vertex AI: set Vertex.Location, such as europe-west4 or global", v.Location))
	}
	if v.Token == nil {
		errs = append(errs, errors.New("no token: set Vertex.Token"))
	}
	return errors.Join(errs...)
}

// VertexEndpoint returns the Vertex AI endpoint for c. A base URL in c replaces the location's URL. Keys and addresses
// in the environment belong to other services and are ignored.
func VertexEndpoint(v drivers.Vertex, c Config) (Endpoint, error) {
	if err := checkVertex(v); err != nil {
		return Endpoint{}, err
	}
	c.Token = v.Token
	return Vendor{URL: vertexURL(v.Location)}.Endpoint(c)
}

// vertexURL returns Vertex AI's address for a location, as documented at
// https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations.
func vertexURL(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// VertexPath returns the path of a publisher's models below the Vertex AI address.
func VertexPath(v drivers.Vertex, publisher string) string {
	return fmt.Sprintf("v1/projects/%s/locations/%s/publishers/%s/models/", v.Project, v.Location, publisher)
}
