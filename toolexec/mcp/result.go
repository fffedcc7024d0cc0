package mcp

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/samber/lo"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// outputOf converts a server's result to an Output.
func (t *tool) outputOf(r *sdk.CallToolResult) toolexec.Output {
	var parts []agent.Part
	for _, content := range r.Content {
		parts = append(parts, partsOf(content)...)
	}
	isText := func(p agent.Part) bool { return p.Kind == agent.PartText }
	if r.StructuredContent != nil && !lo.ContainsBy(parts, isText) { // by the protocol, the text has the same content
		parts = append(parts, agent.Text(jsonOf(r.StructuredContent)))
	}
	out := toolexec.Output{Failed: r.IsError}
	switch broken := t.checkOutput(r); {
	case broken != nil:
		out.Failed = true
		parts = append([]agent.Part{agent.Text(fmt.Sprintf("tool %q of mcp server %q: the result does not match the server's output schema (%s); "+
			"it may be wrong, and the call has taken effect. It says:\n", shortenText(t.name), t.client.server.Name, broken))}, parts...)
	case r.IsError && len(parts) == 0:
		parts = []agent.Part{agent.Text(fmt.Sprintf("tool %q of mcp server %q failed and does not say why", shortenText(t.name), t.client.server.Name))}
	}
	out.Content = agent.ContentOf(separateTexts(parts)...)
	return out
}

// checkOutput returns an error if a result violates the server's output schema.
func (t *tool) checkOutput(r *sdk.CallToolResult) error {
	switch {
	case t.output == nil || r.IsError:
		return nil
	case r.StructuredContent == nil:
		return errors.New("it has no structured content")
	}
	err := t.output.Validate(jsonOf(r.StructuredContent))
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		return errors.New(shortenText(strings.Join(lo.Map(lo.Slice(invalid.Problems, 0, 5),
			func(p agent.ArgumentProblem, _ int) string { return p.String() }), "; ")))
	}
	return err
}

// partsOf converts a piece of a result. A piece that a model cannot receive becomes descriptive text. A link becomes
// text and is not fetched. The model can request it, and hooks can decide about the request.
func partsOf(c sdk.Content) []agent.Part {
	switch c := c.(type) {
	case *sdk.TextContent:
		return []agent.Part{agent.Text(c.Text)}
	case *sdk.ImageContent:
		return []agent.Part{agent.Image(lo.CoalesceOrEmpty(c.MIMEType, "image/png"), c.Data)}
	case *sdk.AudioContent:
		return []agent.Part{agent.File("audio", lo.CoalesceOrEmpty(c.MIMEType, "audio/wav"), c.Data)}
	case *sdk.ResourceLink:
		words := lo.Compact([]string{"[resource link]", lo.CoalesceOrEmpty(c.Title, c.Name), c.URI, c.MIMEType, c.Description})
		return []agent.Part{agent.Text(strings.Join(words, " "))}
	case *sdk.EmbeddedResource:
		return resourceParts(c.Resource)
	}
	return []agent.Part{agent.Text(fmt.Sprintf("[content of an unknown kind: %T]", c))}
}

func resourceParts(r *sdk.ResourceContents) []agent.Part {
	switch {
	case r == nil:
		return []agent.Part{agent.Text("[resource without contents]")}
	case r.Blob == nil:
		return []agent.Part{agent.Text(strings.Join(lo.Compact([]string{"[resource]", r.URI, r.MIMEType}), " ") + "\n" + r.Text)}
	case strings.HasPrefix(r.MIMEType, "image/"):
		return []agent.Part{agent.Image(r.MIMEType, r.Blob)}
	}
	return []agent.Part{agent.File(path.Base(r.URI), lo.CoalesceOrEmpty(r.MIMEType, "application/octet-stream"), r.Blob)}
}

// separateTexts puts a line break between adjacent texts, which would otherwise run together.
func separateTexts(parts []agent.Part) []agent.Part {
	for i := range len(parts) - 1 {
		if parts[i].Kind == agent.PartText && parts[i+1].Kind == agent.PartText && !strings.HasSuffix(parts[i].Text, "\n") {
			parts[i].Text += "\n"
		}
	}
	return parts
}
