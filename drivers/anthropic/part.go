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
)

// partBlock is a part of what a user or a tool says: a text, an image or a document
// block, or nil for what is left away (blank text, another's reasoning).
func (d *Driver) partBlock(p agent.Part) (any, error) {
	if mediaType, data, ok := dataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	switch p.Kind {
	case agent.PartText:
		if blank(p.Text) {
			return nil, nil
		}
		return &sdk.TextBlockParam{Text: p.Text}, nil
	case agent.PartImage:
		if !d.features.Images {
			return nil, errors.New("there is an image, and the model sees none")
		}
		return imageBlock(p)
	case agent.PartFile:
		if !d.features.Files {
			return nil, fmt.Errorf("there is the file %q, and the model reads none", p.Name)
		}
		return documentBlock(p)
	}
	return nil, nil
}

func imageBlock(p agent.Part) (any, error) {
	image := &sdk.ImageBlockParam{}
	switch {
	case p.URL != "":
		image.Source.OfURL = &sdk.URLImageSourceParam{URL: p.URL}
	case !strings.HasPrefix(p.MediaType, "image/"):
		return nil, fmt.Errorf("an image has the media type %q: it must be one of image/png, image/jpeg, image/gif, image/webp", p.MediaType)
	default:
		image.Source.OfBase64 = &sdk.Base64ImageSourceParam{
			Data: base64.StdEncoding.EncodeToString([]byte(p.Data)), MediaType: sdk.Base64ImageSourceMediaType(p.MediaType),
		}
	}
	return image, nil
}

func documentBlock(p agent.Part) (any, error) {
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

// dataURL reads an address that holds the data itself, in base64.
func dataURL(url string) (mediaType string, data agent.Bytes, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return mediaType, agent.Bytes(raw), err == nil
}

// opaque marks what this driver wants back with a part. Behind it are the number of
// calls that came before the part in its reply, a colon, and the service's block
// without the text that the part has.
const opaque = "anthropic:"

// keep is a part for a block that goes back as it came.
func keep(text string, calls int, block any) agent.Part {
	raw, err := json.Marshal(block)
	if err != nil {
		return agent.Reasoning(text, "")
	}
	return agent.Reasoning(text, opaque+strconv.Itoa(calls)+":"+string(raw))
}

// keptBlock is the block that a part was kept for, and how many calls stand before
// it. What is not of this service is not ok: reasoning without a signature is refused.
func keptBlock(p agent.Part) (block sdk.ContentBlockParamUnion, calls int, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, opaque)
	if !ok {
		return block, 0, false
	}
	before, raw, ok := strings.Cut(rest, ":")
	calls, err := strconv.Atoi(before)
	if !ok || err != nil || !isObject(raw) {
		return block, 0, false
	}
	var thinking struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
	}
	if json.Unmarshal([]byte(raw), &thinking) == nil && thinking.Type == "thinking" {
		return sdk.NewThinkingBlock(thinking.Signature, p.Text), calls, true
	}
	return param.Override[sdk.ContentBlockParamUnion](json.RawMessage(raw)), calls, true
}
