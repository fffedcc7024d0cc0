package coordinator

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// blueprintOutput is a response with a blueprint.
type blueprintOutput struct{ Body wire.Stored }

func (a *api) addBlueprints() {
	type createInput struct {
		Body    map[string]any // in the document, a Blueprint
		RawBody []byte
	}
	huma.Register(a.huma, route(http.MethodPost, "/blueprints", "create-blueprint", "Create a blueprint", wire.Admin, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *createInput) (*blueprintOutput, error) {
			name, _ := in.Body["name"].(string)
			err := a.record(ctx, "", name)
			var b *wire.Blueprint
			if err == nil {
				b, err = a.c.readBlueprint(ctx, in.RawBody)
			}
			if err != nil {
				return nil, a.problem("creating a blueprint", err)
			}
			s, err := a.c.put(ctx, b, 0, identityOf(ctx).Name)
			return &blueprintOutput{s}, a.problem("creating a blueprint", err)
		})

	type checkInput struct {
		With    []string       `query:"with,explode" doc:"The names of blueprints that count as existing."`
		Body    map[string]any // in the document, a Blueprint
		RawBody []byte
	}
	huma.Register(a.huma, route(http.MethodPost, "/blueprints/check", "check-blueprint", "List all mistakes in a blueprint, and store nothing",
		wire.Admin, withoutAudit),
		func(ctx context.Context, in *checkInput) (*struct{}, error) {
			_, err := a.c.readBlueprint(ctx, in.RawBody, in.With...)
			return nil, a.problem("checking a blueprint", err)
		})
	for _, path := range []string{"/blueprints", "/blueprints/check"} {
		a.huma.OpenAPI().Paths[path].Post.RequestBody.Content["application/json"].Schema = a.huma.OpenAPI().Components.Schemas.
			Schema(reflect.TypeFor[wire.Blueprint](), true, "")
	}

	type blueprintsInput struct {
		After string `query:"after" doc:"Only blueprints whose names follow this one."`
		Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	type blueprintsOutput struct {
		Body struct {
			Blueprints []wire.Stored `json:"blueprints"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/blueprints", "list-blueprints", "List blueprints by name", wire.Viewer),
		func(ctx context.Context, in *blueprintsInput) (*blueprintsOutput, error) {
			all, err := a.c.ListBlueprints(ctx, in.After, in.Limit)
			if err != nil {
				return nil, a.problem("listing blueprints", err)
			}
			out := &blueprintsOutput{}
			out.Body.Blueprints = append([]wire.Stored{}, all...)
			return out, nil
		})

	type getInput struct {
		Name    string `path:"name"`
		Version int64  `query:"version" minimum:"0" doc:"A version; absent means the newest."`
	}
	huma.Register(a.huma, route(http.MethodGet, "/blueprints/{name}", "get-blueprint", "Read a blueprint", wire.Viewer),
		func(ctx context.Context, in *getInput) (*blueprintOutput, error) {
			s, err := a.c.Blueprint(ctx, in.Name, in.Version)
			return &blueprintOutput{s}, a.problem("reading a blueprint", err)
		})

	type updateInput struct {
		Name    string `path:"name"`
		Body    map[string]any
		RawBody []byte
	}
	huma.Register(a.huma, route(http.MethodPatch, "/blueprints/{name}", "update-blueprint",
		"Change members of a blueprint: absent ones stay, null and {} clear", wire.Admin),
		func(ctx context.Context, in *updateInput) (*blueprintOutput, error) {
			s, err := a.c.UpdateBlueprint(ctx, in.Name, in.RawBody, identityOf(ctx).Name)
			return &blueprintOutput{s}, a.problem("updating a blueprint", err)
		})

	huma.Register(a.huma, route(http.MethodDelete, "/blueprints/{name}", "delete-blueprint", "Delete a blueprint", wire.Admin),
		func(ctx context.Context, in *struct {
			Name string `path:"name"`
		},
		) (*struct{}, error) {
			return nil, a.problem("deleting a blueprint", a.c.DeleteBlueprint(ctx, in.Name))
		})
}

func (a *api) addTokens() {
	type newTokenInput struct {
		Body struct {
			Name       string    `json:"name" doc:"Whose it is."`
			Role       wire.Role `json:"role" enum:"viewer,operator,runner,admin"`
			TTLSeconds int64     `json:"ttl_seconds,omitempty" minimum:"0" doc:"How long it is valid; absent means until it is revoked."`
		}
	}
	type newTokenOutput struct {
		Body struct {
			wire.Token

			Text string `json:"token" doc:"The token. It is not stored and cannot be read again."`
		}
	}
	huma.Register(a.huma, route(http.MethodPost, "/tokens", "create-token", "Create a token", wire.Admin, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *newTokenInput) (*newTokenOutput, error) {
			out := &newTokenOutput{}
			err := a.record(ctx, "", in.Body.Name+", role "+string(in.Body.Role))
			if err != nil {
				return nil, a.problem("creating a token", err)
			}
			out.Body.Text, out.Body.Token, err = a.c.NewToken(ctx, in.Body.Name, in.Body.Role, seconds(in.Body.TTLSeconds), identityOf(ctx).Name)
			return out, a.problem("creating a token", err)
		})

	type tokensOutput struct {
		Body struct {
			Tokens []wire.Token `json:"tokens"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/tokens", "list-tokens", "List valid tokens, without the tokens themselves", wire.Admin),
		func(ctx context.Context, _ *struct{}) (*tokensOutput, error) {
			all, err := a.c.ListTokens(ctx)
			out := &tokensOutput{}
			out.Body.Tokens = append([]wire.Token{}, all...)
			return out, a.problem("listing tokens", err)
		})

	huma.Register(a.huma, route(http.MethodDelete, "/tokens/{id}", "revoke-token", "Revoke a token", wire.Admin),
		func(ctx context.Context, in *struct {
			ID string `path:"id"`
		},
		) (*struct{}, error) {
			return nil, a.problem("revoking a token", a.c.RevokeToken(ctx, in.ID))
		})
}
