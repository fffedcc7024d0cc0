package bash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy/bash"
)

// A command's effects follow its option grammar: abbreviated, in clusters, after operands, and as values. The lines
// in policy/library/testdata/lines contain many more.
func TestEffects(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]bash.Effect{
		"git status":                  nil,
		"git reset --h":               {bash.DiscardsChanges},
		"git clean -f -en":            {bash.DiscardsChanges}, // n is the value of -e
		"git clean -fn":               nil,
		"git restore -sS x":           {bash.DiscardsChanges}, // S is the value of -s
		"git restore -S x":            nil,
		"git checkout x y":            {bash.DiscardsChanges},
		"git checkout -b x y":         nil,
		"git fetch --prune":           nil,
		"git fetch --prune-t":         {bash.LosesCommits},
		"git push -o force x":         nil,
		"git push x -uf":              {bash.ReplacesPushed},
		"git commit -mno":             nil,
		"git commit -anm x":           {bash.SkipsChecks},
		"git -c PAGER.log=x diff":     {bash.SetsPrograms},
		"git -c core.pager=less diff": nil,
		"git config core.pager less":  {bash.SetsPrograms},
		"git -c core.hooksPath=x -c tag.gpgSign=no tag x": {bash.SkipsChecks, bash.SetsPrograms},
		"git reset ${X:---hard}":                          {bash.DiscardsChanges},
		"date +%s":                                        nil,
		"date -u 01010000":                                {bash.ChangesSystem},
		"hostname -f":                                     nil,
		"hostname x":                                      {bash.ChangesSystem},
	} {
		var got []bash.Effect
		for _, c := range bash.Analyse(line, bash.Options{}).Commands {
			got = append(got, c.Effects...)
		}
		assert.Equal(t, want, got, line)
	}
}
