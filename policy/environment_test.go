package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy"
)

// In every kind of file, an action can name only variables of the environment that the file declares. In a pipeline, a variable with the
// host of the URL needs no declaration: its value says who gets it.
func TestDeclaredEnvironment(t *testing.T) {
	t.Setenv("OUR_KEY", "https://hidden.example.com/key")
	const undeclared = "OUR_KEY is neither a variable nor a declared secret"
	header := `headers: {X-Key: "${OUR_KEY}"}`
	for name, tc := range map[string]struct{ pipelines, blueprints, keys, top string }{
		"a header":                  {undeclared, undeclared, `url: https://a.example.com, ` + header, ""},
		"a part of a header":        {undeclared, undeclared, `url: https://a.example.com, headers: {Authorization: "Bearer ${OUR_KEY}"}`, ""},
		"the path":                  {undeclared, undeclared, `url: "https://a.example.com/${OUR_KEY}"`, ""},
		"the query":                 {undeclared, undeclared, `url: "https://a.example.com/?k=${OUR_KEY}"`, ""},
		"the host":                  {undeclared, undeclared, `url: "${OUR_KEY}.example.com"`, ""},
		"before more of the host":   {undeclared, undeclared, `url: "${OUR_KEY}@a.example.com/"`, ""},
		"before a path":             {"", undeclared, `url: "${OUR_KEY}/x"`, ""},
		"the whole URL":             {"", undeclared, `url: "${OUR_KEY}"`, ""},
		"a header beside that":      {"OTHER_KEY is neither", undeclared, `url: "${OUR_KEY}", headers: {X-Key: "${OTHER_KEY}"}`, ""},
		"declared by the action":    {"", "", `url: https://a.example.com, ` + header + `, env: [OUR_KEY]`, ""},
		"declared by the file":      {"", "", `url: https://a.example.com, ` + header, "environment: [OUR_KEY]\n"},
		"another one declared":      {undeclared, undeclared, `url: https://a.example.com, ` + header + `, env: [OTHER_KEY]`, ""},
		"a variable of the run":     {"", "", `url: "https://a.example.com/${SESSION}"`, ""},
		"in a webhook of a gate":    {undeclared, undeclared, `webhook: {url: https://a.example.com, ` + header + `}, by: callback`, ""},
		"a webhook of a gate alone": {"", undeclared, `webhook: {url: "${OUR_KEY}"}, by: callback`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind := map[bool]string{true: "gate", false: "http"}[strings.Contains(tc.keys, "webhook:")]
			for of, want := range map[policy.Kind]string{policy.Pipelines: tc.pipelines, policy.Blueprints: tc.blueprints} {
				point := map[policy.Kind]string{policy.Pipelines: "on_stage_complete", policy.Blueprints: "on_run_start"}[of]
				p, err := policy.ParseKind(of, "file.yaml", []byte(tc.top+"hooks:\n  "+point+":\n    - {type: "+kind+", await: true, "+tc.keys+"}\n"), policy.Options{})
				if err == nil {
					_, err = p.Hooks()
				}
				if want == "" {
					require.NoError(t, err, of)
					continue
				}
				require.ErrorContains(t, err, want, of)
				assert.Regexp(t, `file\.yaml:3:\d+: `, err.Error(), of)
				require.ErrorContains(t, err, "list the environment variable under env", of)
				assert.NotContains(t, err.Error(), "hidden")
			}
		})
	}
}
