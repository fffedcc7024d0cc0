package pipeline

import (
	"regexp"
	"slices"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// comparesStage matches a comparison of the stage, or of the next one, with a name, in a condition.
var comparesStage = regexp.MustCompile(`(?:\$\{(?:NEXT_)?STAGE\}|(?:^|[^.\w])stage)\s*[!=]=\s*["']([^"']*)["']` +
	`|["']([^"']*)["']\s*[!=]=\s*(?:\$\{(?:NEXT_)?STAGE\}|stage\b)`)

// checkStageNames returns the mistakes in conditions that compare the stage with a name that no stage has: such a condition never
// matches, or always. Hooks of the user are for all pipelines, and not checked.
func (p *Pipeline) checkStageNames(rules []policy.Rule) (problems []yamlfile.Problem) {
	names := []string{""} // there is no next stage after the last one
	for i := range p.Stages {
		s := &p.Stages[i]
		names = append(names, s.Name)
		for _, part := range s.Parallel {
			names = append(names, part.Name)
		}
	}
	for _, r := range rules {
		if r.Layer == "global" {
			continue
		}
		for _, match := range comparesStage.FindAllStringSubmatch(r.When, -1) {
			name := match[1] + match[2]
			if slices.Contains(names, name) {
				continue
			}
			problems = append(problems, yamlfile.Problem{
				File: r.File, Position: yamlfile.Position{Line: r.Line, Column: r.Column},
				Text: "when: " + yamlfile.Unknown("stage", name, names[1:]),
			})
		}
	}
	return problems
}
