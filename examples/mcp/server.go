package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type Note struct {
	Name string `json:"name" jsonschema:"the name of a note"`
}

// serveNotes serves two tools over the standard input and output, until the input ends. It uses the official SDK and
// nothing from Grapnel: any MCP server would do.
func serveNotes(ctx context.Context) error {
	var mu sync.Mutex
	notes := []string{"draft", "recipes"}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "list_notes", Description: "Lists the notes."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			return textResult(strings.Join(notes, ", ")), nil, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "delete_note", Description: "Deletes a note."},
		func(_ context.Context, _ *sdk.CallToolRequest, in Note) (*sdk.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(notes, in.Name) {
				return nil, nil, fmt.Errorf("there is no note %q", in.Name)
			}
			notes = slices.DeleteFunc(notes, func(name string) bool { return name == in.Name })
			return textResult("deleted " + in.Name), nil, nil
		})
	return server.Run(ctx, &sdk.StdioTransport{})
}

func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}
