package backtest

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error { return encodeJSON(w, r) }

// WriteJSON writes the differences as indented JSON.
func (d *Diff) WriteJSON(w io.Writer) error { return encodeJSON(w, d) }

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
