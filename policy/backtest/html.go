package backtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// The page's style and script. The page permits only these two, by their hashes, so text in a recording cannot run as
// a script.
var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// perPiece is the number of transcripts that are compressed together.
const perPiece = 50

// WriteHTML writes the report as one self-contained page: totals, charts, tables, and the runs behind the numbers
// with as many transcripts as fit in Options.Keep. If the report has two policies, the page also shows their
// differences.
func (r *Report) WriteHTML(w io.Writer) error {
	out := bufio.NewWriter(w)
	if _, err := out.WriteString(r.page().html()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	cases, pieces := r.pageRuns()
	fmt.Fprintf(out, "<script type=\"application/json\" id=\"data\">%s</script>\n", cases)
	for i, piece := range pieces {
		text, err := zipTranscripts(piece)
		if err != nil {
			return fmt.Errorf("packing transcripts: %w", err)
		}
		fmt.Fprintf(out, "<script type=\"text/plain\" id=\"piece%d\">%s</script>\n", i, text)
	}
	fmt.Fprintf(out, "<script>%s</script>\n</body>\n</html>\n", pageJS)
	return out.Flush()
}

// contentPolicy returns the page's Content-Security-Policy. It permits only the page's style and script.
func contentPolicy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS)
}

// toldCase is a run in the format that the page's script reads.
type toldCase struct {
	ID       string        `json:"id"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Suite    string        `json:"suite"`
	Model    string        `json:"model"`
	Task     string        `json:"task,omitempty"`
	Kind     string        `json:"kind,omitempty"`
	Attack   *toldAttack   `json:"attack,omitempty"`
	Utility  *bool         `json:"utility,omitempty"`
	Security *bool         `json:"security,omitempty"`
	Changed  bool          `json:"changed,omitempty"`
	At       *[2]int       `json:"at,omitempty"` // the piece that contains the transcript, and the index in the piece
	Verdicts []toldVerdict `json:"v"`
}

type toldAttack struct {
	Type string `json:"type"`
	Goal string `json:"goal,omitempty"`
}

type toldVerdict struct {
	Policy    int        `json:"p"`
	Blocked   *int       `json:"blocked,omitempty"`
	Broken    *int       `json:"broken,omitempty"`
	Twins     *int       `json:"twins,omitempty"`
	Decisions []Decision `json:"d"`
}

// pageRuns returns the runs as JSON that can be embedded in a page, and their transcripts in pieces.
func (r *Report) pageRuns() (cases []byte, pieces [][][]byte) {
	changed := map[string]bool{}
	if d, err := r.Diff(); err == nil {
		for _, c := range d.Changes {
			changed[c.File+"\x00"+c.Run] = true
		}
	}
	list := []toldCase{}
	for _, c := range r.Cases {
		t := toldCase{
			ID: invisible.Clean(c.ID), File: invisible.Clean(c.File), Line: c.Line,
			Suite: invisible.Clean(c.Suite), Model: invisible.Clean(c.Model), Task: invisible.Clean(c.Task), Kind: invisible.Clean(string(c.Kind)),
			Utility: c.Utility, Security: c.Security, Changed: changed[c.File+"\x00"+c.ID], Verdicts: []toldVerdict{},
		}
		if c.Attack != nil {
			t.Attack = &toldAttack{invisible.Clean(c.Attack.Type), invisible.Clean(c.Attack.Goal)}
		}
		for _, v := range c.Verdicts {
			t.Verdicts = append(t.Verdicts, r.toldVerdict(v))
		}
		if c.packed != nil {
			if len(pieces) == 0 || len(pieces[len(pieces)-1]) == perPiece {
				pieces = append(pieces, nil)
			}
			last := len(pieces) - 1
			t.At = &[2]int{last, len(pieces[last])}
			pieces[last] = append(pieces[last], c.packed)
		}
		list = append(list, t)
	}
	// Marshal escapes the characters that could end the script element.
	cases, _ = json.Marshal(map[string]any{"cases": list}) //nolint:errchkjson // the list contains only strings, numbers and booleans
	return cases, pieces
}

func (r *Report) toldVerdict(v Verdict) toldVerdict {
	_, p, _ := lo.FindIndexOf(r.Policies, func(p PolicyReport) bool { return p.Name == v.Policy })
	count := func(s Share) *int {
		if s.Of == 0 {
			return nil
		}
		return &s.Count
	}
	return toldVerdict{
		Policy: p, Blocked: count(v.Score.Blocked), Broken: count(v.Score.Broken), Twins: count(v.Score.Twins),
		Decisions: lo.Map(v.Decisions, func(d Decision, _ int) Decision { return d.withoutControls() }),
	}
}

// withoutControls returns the decision with all text cleaned and shortened.
func (d Decision) withoutControls() Decision {
	d.ID, d.Tool, d.Rule, d.File = invisible.Clean(d.ID), invisible.Clean(d.Tool), invisible.Clean(d.Rule), invisible.Clean(d.File)
	d.Arguments, d.Reason, d.Became = cutText(d.Arguments), cutText(d.Reason), cutText(d.Became)
	d.Facts = lo.Map(d.Facts, func(f hooks.Fact, _ int) hooks.Fact {
		return hooks.Fact{Name: invisible.Clean(f.Name), Value: cutText(f.Value)}
	})
	return d
}

// zipTranscripts compresses transcripts in a format that browsers can decompress.
func zipTranscripts(transcripts [][]byte) (string, error) {
	var out bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &out)
	z := gzip.NewWriter(encoder)
	texts := lo.Map(transcripts, func(packed []byte, _ int) json.RawMessage { return unpackRun(packed) })
	if err := json.NewEncoder(z).Encode(texts); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	err := encoder.Close()
	return out.String(), err
}
