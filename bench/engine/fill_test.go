package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// copyRun adds copies of a run, named run1, run2 and so on, with its rows in other tables. Values replace those of the
// columns of runs; x.i is the number of the copy, r the copied run.
func copyRun(t *testing.T, b bareSQL, id string, copies int, values map[string]string, tables ...string) {
	t.Helper()
	values["id"], values["root"] = `'run' || x.i`, `'run' || x.i`
	const atOnce = 50_000
	for first := 1; first <= copies; first += atOnce {
		args := []any{first, min(first+atOnce-1, copies), id}
		names := b.columns(t, "runs")
		require.NoError(t, b.transact(t.Context(), statement{query: fillIn(b, fmt.Sprintf(
			`INSERT INTO runs (%s) SELECT %s FROM runs r CROSS JOIN {series} WHERE r.id = $3 ORDER BY x.i`,
			strings.Join(names, ", "), selectList(names, "r", values))), args: args}), "copying runs")
		for _, table := range tables {
			names := b.columns(t, table)
			require.NoError(t, b.transact(t.Context(), statement{query: fillIn(b, fmt.Sprintf(
				`INSERT INTO %s (%s) SELECT %s FROM {series} JOIN runs c ON c.id = 'run' || x.i CROSS JOIN runs r JOIN %s o ON o.run = r.num WHERE r.id = $3`,
				table, strings.Join(names, ", "), selectList(names, "o", map[string]string{"run": "c.num", "run_id": "c.id"}), table)), args: args}), "copying %s", table)
		}
	}
}

// selectList returns what is selected for the columns of a table.
func selectList(names []string, table string, values map[string]string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = table + "." + name
		if value, ok := values[name]; ok {
			all[i] = value
		}
	}
	return strings.Join(all, ", ")
}

// fillIn replaces the words of the dialect in a statement.
func fillIn(b bareSQL, query string) string {
	w := b.words()
	return strings.NewReplacer("{series}", w.series, "{ago}", w.ago, "{yes}", w.yes, "{no}", w.no).Replace(query)
}
