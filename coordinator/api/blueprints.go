package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

func (a *api) addBlueprints() {
	type createInput struct {
		DryRun  bool           `query:"dry_run" doc:"List all mistakes, and store nothing."`
		With    []string       `query:"with,explode" doc:"With dry_run: the names of blueprints that count as existing."`
		Body    map[string]any // in the document, a Blueprint
		RawBody []byte
	}
	addVersioned(a, route(http.MethodPost, "/blueprints", "create-blueprint", "Create a blueprint", wire.Admin, withStatusCreated, withOwnAudit),
		func(ctx context.Context, in *createInput) (s wire.Stored, err error) {
			if in.DryRun {
				s.Blueprint, err = a.CheckBlueprint(ctx, in.RawBody, in.With...)
				return s, err
			}
			name, _ := in.Body["name"].(string)
			a.record(ctx, name)
			return a.CreateBlueprint(ctx, in.RawBody, identityOf(ctx).Name)
		})

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
	addVersioned(a, route(http.MethodGet, "/blueprints/{name}", "get-blueprint", "Read a blueprint", wire.Viewer),
		func(ctx context.Context, in *getInput) (wire.Stored, error) {
			return a.Blueprint(ctx, in.Name, in.Version)
		})

	type versionsInput struct {
		Name   string `path:"name"`
		Before int64  `query:"before" minimum:"0" doc:"Only versions before this one."`
		Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200"`
	}
	type versions struct {
		Versions []wire.BlueprintVersion `json:"versions"`
	}
	add(a, route(http.MethodGet, "/blueprints/{name}/versions", "list-blueprint-versions",
		"List who has stored which version of a blueprint, newest first", wire.Viewer),
		func(ctx context.Context, in *versionsInput) (versions, error) {
			all, err := a.ListVersions(ctx, in.Name, in.Before, in.Limit)
			return versions{listOf(all)}, err
		})

	type updateInput struct {
		Name    string `path:"name"`
		IfMatch string `header:"If-Match" doc:"The ETag of the version that was read: if another one is the newest, nothing is changed."`
		DryRun  bool   `query:"dry_run" doc:"List all mistakes, and store nothing."`
		Body    map[string]any
		RawBody []byte
	}
	addVersioned(a, route(http.MethodPatch, "/blueprints/{name}", "update-blueprint",
		"Change members of a blueprint: absent ones stay, null and {} clear", wire.Admin, withOwnAudit),
		func(ctx context.Context, in *updateInput) (s wire.Stored, err error) {
			if !in.DryRun {
				a.record(ctx, "")
			}
			after, err := versionIn(in.IfMatch)
			switch {
			case err != nil:
				return s, err
			case in.DryRun:
				s.Blueprint, err = a.CheckUpdate(ctx, in.Name, in.RawBody, after)
				return s, err
			}
			return a.UpdateBlueprint(ctx, in.Name, in.RawBody, after, identityOf(ctx).Name)
		})

	type deleteInput struct {
		Name    string `path:"name"`
		IfMatch string `header:"If-Match" doc:"The ETag of the version that was read."`
	}
	addQuiet(a, route(http.MethodDelete, "/blueprints/{name}", "delete-blueprint", "Delete a blueprint", wire.Admin),
		func(ctx context.Context, in *deleteInput) error {
			after, err := versionIn(in.IfMatch)
			if err != nil {
				return err
			}
			return a.DeleteBlueprint(ctx, in.Name, after)
		})
}

// addVersioned adds an operation that returns a version of a blueprint, or one that is not stored, without a version.
func addVersioned[I any](a *api, o huma.Operation, do func(ctx context.Context, in *I) (wire.Stored, error)) {
	type versioned struct {
		Status int
		ETag   string `header:"ETag" doc:"The version, for If-Match."`
		Body   wire.Stored
	}
	a.register(o, func(to huma.API) {
		huma.Register(to, o, func(ctx context.Context, in *I) (*versioned, error) {
			s, err := do(ctx, in)
			out := &versioned{Status: http.StatusOK, Body: s}
			if s.Version != 0 {
				out.Status = cmp.Or(o.DefaultStatus, http.StatusOK)
				out.ETag = strconv.Quote(strconv.FormatInt(s.Version, 10))
			}
			return out, a.finish(ctx, o, err)
		})
	})
}

// versionIn returns the version in If-Match; zero for any.
func versionIn(header string) (int64, error) {
	tag := strings.Trim(strings.TrimPrefix(strings.TrimSpace(header), "W/"), `"`) // proxies that compress make it weak
	if tag == "" || tag == "*" {
		return 0, nil
	}
	version, err := strconv.ParseInt(tag, 10, 64)
	if err != nil || version < 1 {
		return 0, huma.NewError(http.StatusUnprocessableEntity, "If-Match is wrong", &huma.ErrorDetail{
			Location: "header.If-Match", Message: "expected the ETag of a blueprint, such as \"3\"", Value: header,
		})
	}
	return version, nil
}
