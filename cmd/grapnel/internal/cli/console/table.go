package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// Table writes rows in columns.
type Table struct{ *tabwriter.Writer }

// NewTable returns a table whose first row has the names of the columns, if any are given.
func NewTable(out io.Writer, columns ...any) Table {
	t := Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	if len(columns) > 0 {
		t.Row(columns...)
	}
	return t
}

// Row adds a row. Texts are sanitized and on one line, times are local.
func (t Table) Row(cells ...any) {
	for i, cell := range cells {
		if at, ok := cell.(time.Time); ok {
			cell = LocalTime(at)
		}
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, strings.ReplaceAll(timeline.Clean(fmt.Sprint(cell)), "\n", " "))
	}
	fmt.Fprintln(t)
}

// LocalTime returns a time as people at this terminal read it.
func LocalTime(at time.Time) string { return at.Local().Format(time.DateTime) }
