package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// partBlock returns a part of a user message or a tool's answer as a text, image or document block. The block is
// omitted for parts that are not sent: blank text, and other services' reasoning.
func (d *Driver) partBlock(p agent.Part) (block sdk.ContentBlockParamUnion, err error) {
	if mediaType, data, ok := service.DataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	switch {
	case p.Kind == agent.PartText && !isBlank(p.Text):
		block.OfText = &sdk.TextBlockParam{Text: p.Text}
	case p.Kind == agent.PartImage && !d.features.Images:
		return block, errors.New("the model does not accept images")
	case p.Kind == agent.PartImage:
		block.OfImage, err = imageBlock(p)
	case p.Kind == agent.PartFile && !d.features.Files:
		return block, fmt.Errorf("file %q: the model does not accept files", p.Name)
	case p.Kind == agent.PartFile:
		block.OfDocument, err = documentBlock(p)
	}
	return block, err
}

func imageBlock(p agent.Part) (*sdk.ImageBlockParam, error) {
	image := &sdk.ImageBlockParam{}
	switch {
	case p.URL != "":
		image.Source.OfURL = &sdk.URLImageSourceParam{URL: p.URL}
	case p.Data == "":
		return nil, errors.New("an image has neither bytes nor an address")
	case !strings.HasPrefix(p.MediaType, "image/"):
		return nil, fmt.Errorf("an image has the media type %q: it must be image/png, image/jpeg, image/gif or image/webp", p.MediaType)
	default:
		image.Source.OfBase64 = &sdk.Base64ImageSourceParam{
			Data: base64.StdEncoding.EncodeToString([]byte(p.Data)), MediaType: sdk.Base64ImageSourceMediaType(p.MediaType),
		}
	}
	return image, nil
}

func documentBlock(p agent.Part) (*sdk.DocumentBlockParam, error) {
	document := &sdk.DocumentBlockParam{}
	if p.Name != "" {
		document.Title = param.NewOpt(p.Name)
	}
	mediaType, _, _ := strings.Cut(p.MediaType, ";")
	switch {
	case p.URL != "":
		document.Source.OfURL = &sdk.URLPDFSourceParam{URL: p.URL}
	case mediaType == "application/pdf":
		document.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString([]byte(p.Data))}
	case strings.HasPrefix(mediaType, "text/") || mediaType == "application/json":
		document.Source.OfText = &sdk.PlainTextSourceParam{Data: string(p.Data)}
	default:
		return nil, fmt.Errorf("file %q has the media type %q: the service reads application/pdf and text", p.Name, p.MediaType)
	}
	return document, nil
}

// opaque marks the parts that this driver sends back to the service. After the mark come the number of calls before the
// part in its reply, a colon, and the service's block without the part's text.
const opaque = "anthropic:"

// keep returns a part for a block that must be sent back unchanged.
func keep(text string, calls int, block json.RawMessage) agent.Part {
	return agent.Reasoning(text, opaque+strconv.Itoa(calls)+":"+string(block))
}

// keptBlock returns the block in a part, how many calls come before it, and whether it is thinking. ok is false for
// other services' parts, because the service refuses reasoning without its signature.
func keptBlock(p agent.Part) (block sdk.ContentBlockParamUnion, calls int, isThinking, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, opaque)
	if !ok {
		return block, 0, false, false
	}
	before, raw, _ := strings.Cut(rest, ":")
	calls, err := strconv.Atoi(before)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal([]byte(raw), &fields) != nil || fields == nil {
		return block, 0, false, false
	}
	if kind := string(fields["type"]); kind != `"thinking"` {
		return param.Override[sdk.ContentBlockParamUnion](json.RawMessage(raw)), calls, kind == `"redacted_thinking"`, true
	}
	if fields["thinking"], err = json.Marshal(p.Text); err != nil {
		return block, 0, false, false
	}
	return param.Override[sdk.ContentBlockParamUnion](fields), calls, true, true
}
