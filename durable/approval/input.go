package approval

import (
	"errors"
	"net/http"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/inputform"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// InputField begins the names of the form fields with the input that a tool asks for.
const InputField = "input."

// addInput sets the input of an approval: from JSON, or from the fields of a form.
func (q *question) addInput(a *agent.Approval, given said) error {
	r, asks := q.asked.Questions.Asked()
	fail := func(lines ...string) error {
		return refuse(http.StatusUnprocessableEntity, "The input does not fit. Nothing was decided.\n%s", strings.Join(lines, "\n"))
	}
	switch {
	case given.Input != nil && (!asks || a.Verdict != agent.Approve):
		return refuse(http.StatusUnprocessableEntity, "Input is possible only for what asks for it, together with an approval. Nothing was decided.")
	case !asks || a.Verdict != agent.Approve:
		return nil
	case given.Input != nil:
		text, err := strictjson.Compact(string(given.Input))
		if err != nil {
			return fail(visible(err.Error()))
		}
		a.Input = text
	case len(given.fields) > 0 && r.Schema != "":
		form, err := inputform.Parse(r.Schema)
		if err != nil {
			return err
		}
		text, problems := form.Content(given.fields)
		if len(problems) > 0 {
			return fail(lo.Map(problems, func(p inputform.Problem, _ int) string { return visible(p.Field + ": " + p.Text) })...)
		}
		a.Input = text
	}
	err := q.asked.CheckInput(*a)
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		return fail(lo.Map(invalid.Problems, func(p agent.ArgumentProblem, _ int) string { return visible(p.String()) })...)
	}
	return err
}
