package api

import (
	"context"
	"net/http"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

func (a *api) addBlueprints() {
	type createInput struct {
		Body    map[string]any // in the document, a Blueprint
		RawBody []byte
	}
	add(a, route(http.MethodPost, "/blueprints", "create-blueprint", "Create a blueprint", wire.Admin, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *createInput) (wire.Stored, error) {
			name, _ := in.Body["name"].(string)
			a.record(ctx, name)
			return a.CreateBlueprint(ctx, in.RawBody, identityOf(ctx).Name)
		})

	type checkInput struct {
		With    []string       `query:"with,explode" doc:"The names of blueprints that count as existing."`
		Body    map[string]any // in the document, a Blueprint
		RawBody []byte
	}
	addQuiet(a, route(http.MethodPost, "/blueprints/check", "check-blueprint", "List all mistakes in a blueprint, and store nothing",
		wire.Admin, withoutAudit),
		func(ctx context.Context, in *checkInput) error { return a.CheckBlueprint(ctx, in.RawBody, in.With...) })

	type listInput struct {
		After string `query:"after" doc:"Only blueprints whose names follow this one."`
		Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	type blueprints struct {
		Blueprints []wire.Stored `json:"blueprints"`
	}
	add(a, route(http.MethodGet, "/blueprints", "list-blueprints", "List blueprints by name", wire.Viewer),
		func(ctx context.Context, in *listInput) (blueprints, error) {
			all, err := a.ListBlueprints(ctx, in.After, in.Limit)
			return blueprints{listOf(all)}, err
		})

	type getInput struct {
		Name    string `path:"name"`
		Version int64  `query:"version" minimum:"0" doc:"A version; absent means the newest."`
	}
	add(a, route(http.MethodGet, "/blueprints/{name}", "get-blueprint", "Read a blueprint", wire.Viewer),
		func(ctx context.Context, in *getInput) (wire.Stored, error) {
			return a.Blueprint(ctx, in.Name, in.Version)
		})

	type updateInput struct {
		Name    string `path:"name"`
		Body    map[string]any
		RawBody []byte
	}
	add(a, route(http.MethodPatch, "/blueprints/{name}", "update-blueprint",
		"Change members of a blueprint: absent ones stay, null and {} clear", wire.Admin),
		func(ctx context.Context, in *updateInput) (wire.Stored, error) {
			return a.UpdateBlueprint(ctx, in.Name, in.RawBody, identityOf(ctx).Name)
		})

	type nameInput struct {
		Name string `path:"name"`
	}
	addQuiet(a, route(http.MethodDelete, "/blueprints/{name}", "delete-blueprint", "Delete a blueprint", wire.Admin),
		func(ctx context.Context, in *nameInput) error { return a.DeleteBlueprint(ctx, in.Name) })
}
