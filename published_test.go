package grapnel_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	guardInGo   = regexp.MustCompile(`hooks\.On(?:Call\(|\(hooks\.AtPreToolUse, )"?([\w.-]+)`)
	guardInRule = regexp.MustCompile(`(?m)^(?://\t)? *- (?:\{)?id: ([\w-]+)`)
	guardInFile = regexp.MustCompile(`(?m)^ *- (deny|ask|policy):`)
)

// guardsShown returns the controls of tool calls in pages and examples, each as "file name".
func guardsShown(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	add := func(path, text string, patterns ...*regexp.Regexp) {
		for _, p := range patterns {
			for _, m := range p.FindAllStringSubmatch(text, -1) {
				found[filepath.ToSlash(path)+" "+m[1]] = true
			}
		}
	}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains([]string{"node_modules", "testdata", ".git", "adr"}, d.Name()) {
			return fs.SkipDir
		}
		name, folder := filepath.Base(path), strings.Split(filepath.ToSlash(path), "/")[0]
		shown := folder == "examples" && !strings.HasSuffix(name, "_test.go") || folder == "docs" || name == "doc.go" || name == "README.md" ||
			folder == "cmd" && filepath.Base(filepath.Dir(path)) == "shipped" || strings.HasPrefix(name, "example") && strings.HasSuffix(name, "_test.go")
		if d.IsDir() || !shown {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".go":
			add(path, string(text), guardInGo, guardInRule)
		case ".md":
			add(path, string(text), guardInGo, guardInRule, guardInFile)
		case ".yaml":
			add(path, string(text), guardInRule, guardInFile)
		}
		return nil
	}))
	return slices.Sorted(maps.Keys(found))
}

// tried names, for each shown guard, the test that tries it with other spellings of the call that it denies, or the
// reason why no test is needed.
var tried = map[string]string{
	"README.md inside":                                        "policy/guards_test.go TestPublishedPoliciesHold",
	"README.md only-known":                                    "examples/hello/main_test.go TestOnlyKnownHolds",
	"docs/getting-started.md only-friends":                    "examples/tour/main_test.go TestOnlyFriendsHolds",
	"README.md payee":                                         "policy/guards_test.go TestPublishedPoliciesHold",
	"action/doc.go check":                                     "no guard: a web service decides",
	"action/example_test.go check":                            "no guard: it goes by a file, and not by the call",
	"builder/example_test.go base-dir":                        "builder/published_test.go TestPublishedGuardHolds",
	"capability/example_test.go base-dir":                     "no guard: it shows the order, and allows everything",
	"capability/example_test.go careful":                      "no guard: it asks about every call",
	"capability/example_test.go no-force-push":                "no guard: it shows the order, and allows everything",
	"cmd/grapnel/internal/cli/agents/shipped/agent.yaml deny": "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"doc.go no-sudo":                                          "guards_test.go TestFirstExampleHolds",
	"docs/agent-file.md ask":                                  "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"docs/agent-file.md policy":                               "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"docs/backtesting.md yes-before-write":                    "policy/guards_test.go TestPublishedConfirmationHolds",
	"docs/getting-started.md only-alice":                      "policy/guards_test.go TestFirstStepsHold",
	"docs/hooks.md decoy":                                     "no guard of arguments: it stops the run at every call of its tool",
	"docs/hooks.md dry-run":                                   "no guard: it mocks",
	"docs/hooks.md large":                                     "hooks/published_test.go TestGuardsOfTheGuideHold",
	"docs/hooks.md no-prod":                                   "hooks/published_test.go TestGuardsOfTheGuideHold",
	"docs/hooks.md patience":                                  "no guard: it rewrites a time limit",
	"docs/hooks.md two-payments":                              "no guard of arguments: it counts calls",
	"docs/mcp-tools.md careful":                               "no guard of arguments: it goes by what the server says of its tools",
	"docs/testing-agents.md small":                            "hooks/published_test.go TestGuardsOfTheGuideHold",
	"docs/writing-a-capability.md queue":                      "no guard: it goes by how many calls wait",
	"docs/moving.md check":                                    "policy/scripts_test.go TestPublishedScriptsFailClosed",
	"docs/moving.md limit":                                    "hooks/published_test.go TestLimitOfTheGuideHolds",
	"docs/moving.md no-push":                                  "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/policies.md audit":                                  "no guard: a web service is told",
	"docs/policies.md files":                                  "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/policies.md inside":                                 "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/policies.md log":                                    "no guard: a program is told that a conversation has ended",
	"docs/policies.md style":                                  "no guard: it adds context at the start of a conversation",
	"docs/policies.md no-fetch":                               "no guard of arguments: it denies every call of its tools",
	"docs/policies.md no-wipe":                                "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/approvals.md pay":                                   "no guard of arguments: it asks about every call of its tool",
	"docs/policies.md offline":                                "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/policies.md readable":                               "policy/guards_test.go TestPublishedPoliciesHold",
	"docs/policies.md scan":                                   "no guard: a program decides",
	"docs/policy-testing.md inside":                           "policy/guards_test.go TestPublishedPoliciesHold",
	"guard/example_test.go limit":                             "guard/published_test.go TestPublishedGuardHolds",
	"drivers/replay/example_test.go no-lending":               "no guard of arguments: it denies every call of its tool",
	"examples/agents/fixer.yaml ask":                          "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"examples/agents/fixer.yaml policy":                       "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"examples/agents/local.yaml ask":                          "cmd/grapnel/internal/cli/agents/guards_test.go TestPublishedAgentsHold",
	"examples/approval/main.go guard":                         "examples/approval/main_test.go TestGuardHolds",
	"examples/backtest/policies.go name":                      "examples/backtest/rules/rules_test.go TestOperatorStatic",
	"examples/confirm/confirm.yaml yes-before-write":          "policy/guards_test.go TestPublishedConfirmationHolds",
	"examples/hello/hello.go only-known":                      "examples/hello/main_test.go TestOnlyKnownHolds",
	"examples/mcp/main.go only-drafts":                        "examples/mcp/main_test.go TestOnlyDraftsHolds",
	"examples/observe/main.go only-ready":                     "examples/observe/main_test.go TestOnlyReadyHolds",
	"examples/policy/policy.yaml inside":                      "examples/policy/main_test.go TestPolicyHolds",
	"adapters/adk/README.md payee":                            "adapters/adk/readme_test.go TestPublishedPolicyHolds",
	"adapters/eino/README.md payee":                           "adapters/eino/readme_test.go TestPublishedPolicyHolds",
	"examples/frameworks/policy.yaml large":                   "guard/published_test.go TestPublishedPolicyHolds",
	"examples/frameworks/policy.yaml limit":                   "guard/published_test.go TestPublishedPolicyHolds",
	"examples/frameworks/policy.yaml payee":                   "guard/published_test.go TestPublishedPolicyHolds",
	"examples/frameworks/policy.yaml secrets":                 "no guard: it redacts",
	"examples/approval/README.md guard":                       "examples/approval/main_test.go TestGuardHolds",
	"examples/quickstart/hooks.go base-dir":                   "examples/quickstart/hooks_test.go TestGuardsHold",
	"examples/quickstart/hooks.go no-force-push":              "examples/quickstart/hooks_test.go TestGuardsHold",
	"examples/quickstart/hooks.go no-wipe":                    "examples/quickstart/hooks_test.go TestGuardsHold",
	"examples/repair/hooks.go no-wipe":                        "examples/repair/hooks_test.go TestNoWipeHolds",
	"examples/familiar-hooks/runtime.go rate-limited":         "no guard: it mocks the first call",
	"examples/stream/main.go only-office":                     "examples/stream/main_test.go TestOnlyOfficeHolds",
	"examples/subagents/main.go only-docs":                    "examples/subagents/main_test.go TestOnlyDocsHolds",
	"examples/tour/main.go only-friends":                      "examples/tour/main_test.go TestOnlyFriendsHolds",
	"hooks/doc.go no-push":                                    "hooks/published_test.go TestPublishedGuardsHold",
	"hooks/example_tool_test.go careful":                      "hooks/published_test.go TestPublishedGuardsHold",
	"hooks/example_tool_test.go fixture":                      "no guard: it mocks",
	"hooks/example_tool_test.go fuse":                         "hooks/published_test.go TestPublishedGuardsHold",
	"hooks/example_tool_test.go name":                         "no guard: it shows the order, and allows everything",
	"hooks/example_tool_test.go no-push":                      "hooks/published_test.go TestPublishedGuardsHold",
	"hooks/example_tool_test.go no-shell":                     "no guard: it is misspelt, and shows that this is found",
	"hooks/example_tool_test.go patience":                     "no guard: it rewrites a time limit",
	"hooks/example_tool_test.go policy-server":                "no guard: it fails",
	"hooks/example_tool_test.go short":                        "hooks/requiretext_test.go TestRequireText",
	"hooks/example_tool_test.go two-commands":                 "no guard of arguments: it counts calls",
	"hooks/hookstest/example_test.go no-push":                 "hooks/hookstest/published_test.go TestPublishedGuardHolds",
	"hooks/hookstest/example_test.go tidy":                    "no guard: it rewrites",
	"policy/bash/doc.go no-wipe":                              "policy/bash/published_test.go TestPublishedGuardHolds",
	"policy/internal/condition/example_test.go no-wipe":       "policy/internal/condition/guards_test.go TestPublishedGuardsHold",
	"policy/internal/condition/example_test.go try":           "no guard: it passes every call",
	"policy/doc.go inside":                                    "policy/guards_test.go TestPublishedPoliciesHold",
	"policy/example_test.go limit":                            "policy/guards_test.go TestPublishedPoliciesHold",
	"policy/example_test.go nothing-out":                      "no guard: it does not load",
	"policy/internal/provenance/doc.go recipient":             "no guard of spellings: package provenance compares values, whatever their text",
	"telemetry/example_test.go no-shell":                      "no guard of arguments: it denies every call",
	"toolexec/mcp/example_test.go no-rain":                    "no guard of arguments: it denies every call of its tool",
}

// Each shown guard must have a test, so that a changed or a new guard is tested.
func TestEveryPublishedGuardIsTried(t *testing.T) {
	t.Parallel()
	shown := guardsShown(t)
	for _, guard := range shown {
		by, known := tried[guard]
		if !assert.True(t, known, "%s is shown and no test tries it: let an evasion.Guard hold it, and name the test in published_test.go", guard) ||
			strings.HasPrefix(by, "no guard") {
			continue
		}
		file, test, _ := strings.Cut(by, " ")
		text, err := os.ReadFile(file)
		require.NoError(t, err, guard)
		assert.Contains(t, string(text), "func "+test+"(t *testing.T)", guard)
	}
	for _, guard := range slices.Sorted(maps.Keys(tried)) {
		assert.Contains(t, shown, guard, "it is not shown any more: take it out of published_test.go")
	}
}
