package backtest

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report for programs, indented.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

// WriteJSON writes the differences for programs, indented.
func (d *Diff) WriteJSON(w io.Writer) error { return writeJSON(w, d) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v) //nolint:wrapcheck // the caller knows what it wrote
}
