package agent

import (
	"iter"
	"slices"
	"strings"
)

// PartKind is the kind of a Part.
type PartKind string

// The kinds of parts.
const (
	// PartText is plain text.
	PartText PartKind = "text"
	// PartImage is an image, by URL or by its bytes.
	PartImage PartKind = "image"
	// PartFile is a document or any other file, by URL or by its bytes.
	PartFile PartKind = "file"
	// PartReasoning is the model's reasoning before its answer. Text is empty if the service reveals only opaque data.
	PartReasoning PartKind = "reasoning"
)

// Part is one piece of the content of a message or result. It is a plain value: changing a copy does not change the
// original.
type Part struct {
	Kind PartKind `json:"kind"`
	// Text is the text of a text or reasoning part.
	Text string `json:"text,omitempty"`
	// URL is the address of an image or file. It is empty if the bytes are in Data.
	URL string `json:"url,omitempty"`
	// MediaType is the IANA media type of Data, such as "image/png".
	MediaType string `json:"media_type,omitempty"`
	// Name is the file name that a person would see.
	Name string `json:"name,omitempty"`
	// Data is the bytes of an image or file.
	Data Bytes `json:"data,omitempty"`
	// Opaque is data that a service requires back unchanged with this part, such as a reasoning block's signature.
	Opaque string `json:"opaque,omitempty"`
}

// Bytes is binary data that cannot be changed. It is written to JSON in base64.
type Bytes string

// Text returns a part of plain text.
func Text(text string) Part { return Part{Kind: PartText, Text: text} }

// Image returns an image given by its bytes, which are copied.
func Image(mediaType string, data []byte) Part {
	return Part{Kind: PartImage, MediaType: mediaType, Data: Bytes(data)}
}

// ImageURL returns an image given by its address.
func ImageURL(url string) Part { return Part{Kind: PartImage, URL: url} }

// File returns a file given by its bytes, which are copied.
func File(name, mediaType string, data []byte) Part {
	return Part{Kind: PartFile, Name: name, MediaType: mediaType, Data: Bytes(data)}
}

// FileURL returns a file given by its address.
func FileURL(name, url string) Part { return Part{Kind: PartFile, Name: name, URL: url} }

// Reasoning returns a model's reasoning, with the opaque data that its service requires back, if any.
func Reasoning(text, opaque string) Part {
	return Part{Kind: PartReasoning, Text: text, Opaque: opaque}
}

// Content is the content of a message or a tool's answer: text, or several parts. It is immutable and safe for
// concurrent use. The zero Content is empty text.
type Content struct {
	text  string
	parts *[]Part // nil when the content is only text, never written
}

// TextContent returns content that is only text.
func TextContent(text string) Content { return Content{text: text} }

// ContentOf returns content of the given parts, which are copied.
func ContentOf(parts ...Part) Content {
	if len(parts) == 1 && parts[0] == Text(parts[0].Text) {
		return Content{text: parts[0].Text}
	}
	if len(parts) == 0 {
		return Content{}
	}
	own := slices.Clone(parts)
	return Content{parts: &own}
}

// Text returns the text parts, joined in order, without reasoning.
func (c Content) Text() string {
	if c.parts == nil {
		return c.text
	}
	var b strings.Builder
	for _, p := range *c.parts {
		if p.Kind == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Len returns the number of parts. Empty content has none.
func (c Content) Len() int {
	switch {
	case c.parts != nil:
		return len(*c.parts)
	case c.text != "":
		return 1
	}
	return 0
}

// Parts iterates over the parts in order.
func (c Content) Parts() iter.Seq2[int, Part] {
	return func(yield func(int, Part) bool) {
		if c.parts == nil {
			if c.text != "" {
				yield(0, Text(c.text))
			}
			return
		}
		for i, p := range *c.parts {
			if !yield(i, p) {
				return
			}
		}
	}
}

// list returns the parts when there are several, and nil otherwise.
func (c Content) list() []Part {
	if c.parts == nil {
		return nil
	}
	return *c.parts
}

// IsText reports whether the content is only text, or empty.
func (c Content) IsText() bool { return c.parts == nil }

// Equal reports whether both contents hold the same parts.
func (c Content) Equal(d Content) bool {
	return c.text == d.text && slices.Equal(c.list(), d.list())
}
