package openai

import (
	"net/http"

	"github.com/grapnel-go/grapnel/agent"
)

// api describes one of the service's two APIs: the format of its requests and answers.
type api struct {
	// path is the path after the base URL.
	path string
	// reserved maps request members that no option may set to advice.
	reserved map[string]string
	// message encodes a message from the transcript.
	message func(d *Driver, m agent.Message) ([]byte, error)
	// request encodes a request's body.
	request func(d *Driver, model string, s agent.State, stream bool) ([]byte, error)
	// readWhole reads a reply in one piece. It calls emit with the reply unless emit is nil.
	readWhole func(d *Driver, a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error)
	// readStream reads a reply in pieces.
	readStream func(d *Driver, a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error)
}

func chatAPI() *api {
	return &api{
		path: "chat/completions", reserved: chatReserved, message: (*Driver).encodeMessage, request: (*Driver).request,
		readWhole: (*Driver).readWhole, readStream: (*Driver).readStream,
	}
}

func responsesAPI() *api {
	return &api{
		path: "responses", reserved: responsesReserved, message: (*Driver).encodeItems, request: (*Driver).responsesRequest,
		readWhole: (*Driver).readResponse, readStream: (*Driver).readResponseStream,
	}
}
