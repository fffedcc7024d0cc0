package gemini

import (
	"encoding/base64"
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// media returns an image or a file, by its bytes or by its address.
func (w writer) media(p agent.Part) (part, error) {
	switch {
	case p.Kind == agent.PartImage && !w.d.features.Images:
		return part{}, fmt.Errorf("%s does not accept images", w.d)
	case p.Kind == agent.PartFile && !w.d.features.Files:
		return part{}, fmt.Errorf("file %q: %s does not accept files", p.Name, w.d)
	}
	if mediaType, data, ok := service.DataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	switch {
	case p.URL != "":
		mediaType := p.MediaType
		if mediaType == "" {
			mediaType = mediaTypes[strings.ToLower(path.Ext(strings.SplitN(p.URL, "?", 2)[0]))]
		}
		return part{File: &fileData{mediaType, p.URL}}, nil
	case p.Data == "":
		return part{}, fmt.Errorf("the %s %q has neither bytes nor an address", p.Kind, p.Name)
	}
	mediaType, _, err := mime.ParseMediaType(p.MediaType)
	if err != nil {
		return part{}, fmt.Errorf("the %s %q has the media type %q: set one such as image/png", p.Kind, p.Name, p.MediaType)
	}
	return part{Inline: &blob{mediaType, base64.StdEncoding.EncodeToString([]byte(p.Data))}}, nil
}

// mediaTypes maps address extensions to their usual media types.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
	".heic": "image/heic", ".heif": "image/heif", ".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/markdown",
	".html": "text/html", ".csv": "text/csv", ".json": "application/json", ".mp4": "video/mp4", ".mov": "video/quicktime",
	".webm": "video/webm", ".mp3": "audio/mp3", ".wav": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg",
}
