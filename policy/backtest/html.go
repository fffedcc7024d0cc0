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
)

// The page. Its style and its script are the only ones that it lets run, by their hashes: what stands in a recording is
// text, and stays text.
var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// perPiece is how many transcripts are packed together.
const perPiece = 50

// WriteHTML writes the report as one page that needs nothing else: totals, charts, tables, and the runs behind the
// numbers with their transcripts, as far as Options.Keep had room for them. Where the report has two policies, what they
// decide differently is in it, too.
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
	return out.Flush() //nolint:wrapcheck // the caller knows what it wrote
}

// contentPolicy returns the policy of the page's content: its own style and script, and nothing else.
func contentPolicy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS)
}

// toldCase is a run as the page's script reads it.
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
	At       *[2]int       `json:"at,omitempty"` // the piece with its transcript, and the place in it
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

// pageRuns returns the runs for the page's script, as JSON that can stand in a page, and their transcripts in pieces.
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
			ID: Clean(c.ID), File: Clean(c.File), Line: c.Line, Suite: Clean(c.Suite), Model: Clean(c.Model), Task: Clean(c.Task), Kind: Clean(string(c.Kind)),
			Utility: c.Utility, Security: c.Security, Changed: changed[c.File+"\x00"+c.ID], Verdicts: []toldVerdict{},
		}
		if c.Attack != nil {
			t.Attack = &toldAttack{Clean(c.Attack.Type), Clean(c.Attack.Goal)}
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
	// It escapes what could end the script.
	cases, _ = json.Marshal(map[string]any{"cases": list}) //nolint:errchkjson // texts, numbers and booleans
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

// withoutControls returns the decision with everything in it made harmless, and shortened.
func (d Decision) withoutControls() Decision {
	d.ID, d.Tool, d.Rule, d.File = Clean(d.ID), Clean(d.Tool), Clean(d.Rule), Clean(d.File)
	d.Arguments, d.Reason, d.Became = cutText(d.Arguments), cutText(d.Reason), cutText(d.Became)
	d.Facts = lo.Map(d.Facts, func(f hooks.Fact, _ int) hooks.Fact { return hooks.Fact{Name: Clean(f.Name), Value: cutText(f.Value)} })
	return d
}

// zipTranscripts packs transcripts together as a browser can unpack them.
func zipTranscripts(transcripts [][]byte) (string, error) {
	var out bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &out)
	z := gzip.NewWriter(encoder)
	texts := lo.Map(transcripts, func(packed []byte, _ int) json.RawMessage { return unpackRun(packed) })
	if err := json.NewEncoder(z).Encode(texts); err != nil {
		return "", err //nolint:wrapcheck // the caller says what it is about
	}
	if err := z.Close(); err != nil {
		return "", err //nolint:wrapcheck // as above
	}
	err := encoder.Close()
	return out.String(), err //nolint:wrapcheck // as above
}
