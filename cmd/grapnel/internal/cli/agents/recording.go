package agents

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/toolexec"
)

// openRecording returns the first run of a recording, with its tools.
func openRecording(path string) (*replay.Session, []toolexec.Tool, error) {
	recording, err := replay.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the recording: %w", err)
	}
	defer recording.Close()
	session, schemas, err := firstRun(recording)
	if err == nil && schemas.file != "" {
		schemas.list, err = replay.LoadTools(filepath.Join(filepath.Dir(path), schemas.file))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening the recording: %w", err)
	}
	return session, replay.Tools(schemas.list...), nil
}

// toolsOf locates the schemas of a recording's tools.
type toolsOf struct {
	list []replay.ToolSchema
	file string
}

func firstRun(recording *replay.Reader) (*replay.Session, toolsOf, error) {
	for record, err := range recording.Records() {
		if err != nil {
			return nil, toolsOf{}, err
		}
		session, err := replay.NewSession(record)
		if err == nil && session.Runs() == 0 {
			err = fmt.Errorf("%s: it has no messages", record.ID)
		}
		return session, toolsOf{record.Tools, record.ToolsRef}, err
	}
	return nil, toolsOf{}, errors.New("the file has no runs")
}
