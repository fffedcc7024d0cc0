package grapnel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/grapnel-go/grapnel"

// layer lists what the shipped (non-test) code of one package may import in addition to the standard library. The
// zero layer is a package that imports nothing else.
type layer struct {
	// Ours are packages of this module, by their path below its root. A path that ends in "/..." includes everything
	// below it.
	Ours []string
	// Modules are third-party modules, by module path.
	Modules []string
	// Test marks a package for our own tests and for users' tests. It may import test modules, and only
	// tests may import it.
	Test bool
	// Shown marks example programs. They may also import packages for tests.
	Shown bool
	// Planned marks a package that does not exist yet. Remove the mark when the package is added.
	Planned bool
}

// Modules that several layers import.
var (
	values    = []string{"github.com/samber/mo", "github.com/samber/lo"}
	telemetry = []string{
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/otel/metric",
	}
	core    = slices.Concat(values, telemetry)
	schemas = []string{"github.com/google/jsonschema-go", "github.com/santhosh-tekuri/jsonschema/v6"}
	// observed lists the packages of this module that have their own events.
	observed = []string{"agent", "hooks", "processor", "toolexec/mcp", "durable", "capability", "capability/kit"}
	testOnly = []string{
		"github.com/stretchr/testify",
		"pgregory.net/rapid",
		"go.uber.org/goleak",
		"github.com/google/go-cmp",
	}
)

// commandLine returns the layer of a package of the command: it may use the public packages that are listed here, the named rooms of the
// command, and the named internal packages.
func commandLine(rooms string, internal ...string) layer {
	for room := range strings.FieldsSeq(rooms) {
		internal = append(internal, "cmd/grapnel/internal/"+room)
	}
	return layer{Ours: append(internal,
		"action", "action/claudehooks", "action/local", "agent", "capability", "coordinator", "coordinator/api", "coordinator/client", "coordinator/web", "coordinator/wire", "drivers",
		"drivers/...", "durable", "durable/approval", "durable/command", "durable/gate", "durable/postgres", "durable/sqlite", "durable/temporal",
		"durable/waiver", "hooks", "hooks/...", "pipeline", "policy", "policy/backtest", "policy/bash", "policy/library", "policy/policytest",
		"policy/recorded", "policy/tools", "registry", "telemetry", "telemetry/otelsetup", "toolexec", "toolexec/...",
	), Modules: slices.Concat(values, []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys", "golang.org/x/term",
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters/stdout/stdouttrace",
		"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
	})}
}

// layers lists what each package may import. Tests may import any package of the module, because an Example may show a
// part inside a whole agent.
var layers = map[string]layer{
	// The lowest layer.
	"":                    {}, // documentation only
	"internal/plog":       {},
	"internal/strictjson": {Modules: []string{"github.com/go-json-experiment/json"}},
	"internal/yamlfile":   {Ours: []string{"internal/near", "internal/strictjson"}, Modules: append(values, "go.yaml.in/yaml/v4")},
	"internal/reserved":   {},
	"internal/semconv":    {Modules: []string{"go.opentelemetry.io/otel"}},
	"internal/startedrun": {},
	"internal/near":       {Modules: values},
	"internal/nils":       {},
	"internal/lazy":       {},
	"internal/linediff":   {},
	"internal/storedruns": {Ours: []string{"agent", "drivers/replay", "durable", "hooks", "internal/yamlfile", "policy/backtest", "policy/policytest", "policy/recorded"}, Modules: values},
	"internal/invisible":  {Ours: []string{"internal/lazy"}},
	"internal/version":    {},
	"internal/markup":     {},
	"internal/rooted":     {},
	"internal/worktree":   {},
	"internal/inputform":  {Ours: []string{"internal/invisible", "internal/strictjson"}},
	"internal/errguard":   {Ours: []string{"internal/nils"}},
	"agent":               {Ours: []string{"internal/errguard", "internal/inputform", "internal/nils", "internal/plog", "internal/reserved", "internal/startedrun", "internal/strictjson"}, Modules: core},

	// Running programs and ending all processes that they start.
	"internal/process": {Modules: append(core, "golang.org/x/sys")},

	// Calls that answer for others, in the stores.
	"internal/coalesce": {},

	// The page where a gate is answered.
	"internal/callback": {Ours: []string{"agent", "internal/markup", "internal/strictjson"}},

	// The journal that connects durable runs with the actions inside them.
	"internal/runctx": {Ours: []string{"agent"}},

	// The place where the gates of pipelines wait.
	// What engines need to fire the points around their runs.
	"internal/firing": {Ours: []string{"agent", "durable", "hooks", "internal/runctx", "internal/strictjson"}},

	// The seams. They do not import each other.
	"processor":    {Ours: []string{"agent"}, Modules: core},
	"continuation": {Ours: []string{"agent", "internal/reserved"}, Modules: core},
	"hooks":        {Ours: []string{"agent", "hooks/internal/scrub", "internal/errguard", "internal/near", "internal/reserved", "internal/runctx", "internal/strictjson"}, Modules: core},
	"toolexec": {
		Ours:    []string{"agent", "internal/errguard", "internal/near", "internal/nils", "internal/startedrun", "internal/strictjson"},
		Modules: slices.Concat(core, schemas),
	},

	// Contracts of others.
	"adapters/agenthooks": {
		Ours:    []string{"agent", "guard", "hooks", "internal/nils", "internal/reserved", "internal/strictjson"},
		Modules: append(values, "github.com/go-json-experiment/json"),
	},

	// The packages that assemble an agent.
	"capability": {
		Ours:    []string{"agent", "processor", "toolexec", "continuation", "hooks", "internal/nils", "telemetry", "durable"},
		Modules: core,
	},
	"capability/kit": {
		Ours:    []string{"agent", "processor", "toolexec", "toolexec/files", "continuation", "hooks", "capability", "internal/reserved", "internal/semconv", "internal/startedrun"},
		Modules: values,
	},
	"builder": {
		Ours:    []string{"agent", "processor", "toolexec", "continuation", "hooks", "capability", "internal/nils"},
		Modules: core,
	},

	"registry": {
		Ours:    []string{"agent", "processor", "toolexec", "hooks", "capability", "builder", "durable/command", "internal/yamlfile"},
		Modules: values,
	},

	// Telemetry with the API of OpenTelemetry. Only programs import the SDK.
	"telemetry": {Ours: []string{"agent", "hooks", "internal/semconv", "internal/strictjson", "internal/version"}, Modules: core},
	"telemetry/otelsetup": {Ours: []string{"internal/semconv", "internal/version", "telemetry", "telemetry/otelsetup/internal/otlp"}, Modules: slices.Concat(core, []string{
		"go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/sdk/metric",
		"go.opentelemetry.io/otel/exporters/stdout/stdouttrace",
		"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric",
	})},
	"telemetry/otelsetup/internal/otlp": {Modules: slices.Concat(values, []string{
		"connectrpc.com/connect", // OTLP over gRPC: docs/adr/0001
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/sdk/metric",
		"go.opentelemetry.io/otel/exporters/otlp/otlptrace",
		"go.opentelemetry.io/proto/otlp",
		"google.golang.org/protobuf",
	})},

	// Helpers for testing the seams.
	"agent/agenttest": {Ours: []string{"agent"}, Modules: core, Test: true},
	"hooks/hookstest": {Ours: []string{"agent", "hooks", "hooks/fire"}, Modules: core, Test: true},

	// Durable runs.
	"durable":                {Ours: []string{"agent", "internal/coalesce", "internal/invisible", "internal/runctx", "internal/semconv", "internal/version", "toolexec"}, Modules: core},
	"durable/command":        {Ours: []string{"agent", "durable", "internal/process"}, Modules: append(core, "golang.org/x/sys")},
	"durable/waiver":         {Ours: []string{"agent", "durable", "hooks", "internal/invisible"}, Modules: values},
	"durable/approval":       {Ours: []string{"agent", "durable", "durable/waiver", "internal/inputform", "internal/invisible", "internal/linediff", "internal/process", "internal/strictjson", "internal/yamlfile"}, Modules: values},
	"durable/gate":           {Ours: []string{"agent", "action", "durable", "internal/callback"}, Modules: values},
	"durable/durabletest":    {Ours: []string{"agent", "durable"}, Modules: core, Test: true},
	"durable/internal/store": {Ours: []string{"agent", "durable", "internal/coalesce"}, Modules: values},
	"durable/memory":         {Ours: []string{"agent", "durable", "durable/internal/store"}},
	"durable/sqlite":         {Ours: []string{"agent", "durable", "durable/internal/store"}, Modules: append(values, "modernc.org/sqlite")},
	"durable/postgres":       {Ours: []string{"agent", "durable", "durable/internal/store"}, Modules: append(values, "github.com/jackc/pgx/v5")},
	"durable/temporal": {Ours: []string{"agent", "durable"}, Modules: append(values,
		"connectrpc.com/connect", "google.golang.org/protobuf")}, // gRPC without Temporal's SDK: docs/adr/0010

	// Drivers of models.
	"drivers":                  {Ours: []string{"agent"}, Modules: core},
	"drivers/internal/service": {Ours: []string{"agent", "drivers", "internal/lazy", "internal/strictjson"}, Modules: core},
	"drivers/openai":           {Ours: []string{"agent", "drivers", "drivers/internal/service"}, Modules: append(core, "github.com/tidwall/gjson")},
	"drivers/anthropic":        {Ours: []string{"agent", "drivers", "drivers/internal/service"}, Modules: append(core, "github.com/anthropics/anthropic-sdk-go")},
	"drivers/gemini":           {Ours: []string{"agent", "drivers", "drivers/internal/service"}, Modules: core},
	"drivers/replay": {
		Ours:    []string{"agent", "toolexec", "internal/strictjson"},
		Modules: slices.Concat(values, schemas),
	},

	// Tools.
	"toolexec/shell": {Ours: []string{"agent", "toolexec", "internal/invisible", "internal/process"}, Modules: append(values, "golang.org/x/sys")},
	"toolexec/files": {Ours: []string{"agent", "toolexec"}, Modules: append(core, "github.com/bmatcuk/doublestar/v4")},
	"toolexec/mcp":   {Ours: []string{"agent", "internal/inputform", "internal/process", "internal/runctx", "internal/version", "toolexec"}, Modules: slices.Concat(core, schemas, []string{"github.com/modelcontextprotocol/go-sdk"})},

	// Firing a single hook point.
	"hooks/fire": {Ours: []string{"agent", "hooks", "internal/reserved"}, Modules: core},

	// Ready-made hooks.
	"hooks/basedir":   {Ours: []string{"agent", "hooks", "internal/strictjson"}, Modules: core},
	"hooks/redact":    {Ours: []string{"agent", "hooks", "hooks/internal/scrub", "internal/invisible", "internal/strictjson"}, Modules: core},
	"hooks/ratelimit": {Ours: []string{"agent", "hooks", "internal/reserved"}, Modules: append(core, "golang.org/x/time")},
	"hooks/budget":    {Ours: []string{"agent", "hooks"}, Modules: core},
	"hooks/audit":     {Ours: []string{"agent", "hooks"}, Modules: core},
	"hooks/verify":    {Ours: []string{"agent", "hooks", "internal/process"}, Modules: core},
	"hooks/loops":     {Ours: []string{"agent", "hooks", "internal/strictjson"}, Modules: core},
	"hooks/mock":      {Ours: []string{"agent", "hooks", "internal/strictjson"}, Modules: core},
	"hooks/judge":     {Ours: []string{"agent", "hooks", "internal/strictjson"}, Modules: core},
	"hooks/pii":       {Ours: []string{"agent", "hooks", "hooks/internal/scrub", "internal/invisible", "internal/lazy"}, Modules: core},

	"hooks/internal/scrub": {Ours: []string{"agent", "internal/strictjson"}, Modules: core},

	"guard":                    {Ours: []string{"agent", "hooks", "internal/nils", "internal/reserved", "internal/strictjson"}, Modules: core},
	"internal/mcpcall":         {Ours: []string{"agent", "guard", "internal/strictjson"}, Modules: values},
	"internal/mcpproxy":        {Ours: []string{"guard", "internal/mcpcall", "internal/process", "internal/strictjson", "toolexec/mcp"}, Modules: append(values, "golang.org/x/text")},
	"adapters/mcp":             {Ours: []string{"agent", "guard", "internal/mcpcall"}, Modules: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"guard/guardtest":          {Ours: []string{"agent", "guard", "hooks"}, Modules: core, Test: true},
	"guard/usedsql":            {Ours: []string{"guard"}},
	"internal/hostgate":        {Ours: []string{"hooks", "internal/strictjson", "policy/bash"}},
	"internal/hostgate/engine": {Ours: []string{"agent", "guard", "hooks", "internal/hostgate", "internal/strictjson", "policy"}, Modules: []string{"golang.org/x/sys"}},

	// The actions of declared hooks.
	"action": {
		Ours: []string{
			"agent", "hooks", "hooks/judge",
			"internal/callback", "internal/process", "internal/runctx", "internal/strictjson",
		},
		Modules: append(values, "mvdan.cc/sh/v3"),
	},
	"action/claudehooks": {
		Ours: []string{
			"action", "action/local", "agent", "capability", "hooks", "hooks/judge", "policy/bash", "toolexec", "toolexec/shell",
			"internal/hostgate", "internal/near", "internal/process", "internal/yamlfile",
		},
		Modules: append(values, "github.com/bmatcuk/doublestar/v4"),
	},
	"action/local": {Ours: []string{"action", "agent", "capability", "hooks", "toolexec"}, Modules: values},

	// Declared hooks: files with rules.
	"pipeline": {Ours: []string{
		"action", "agent", "durable", "durable/command", "hooks", "policy", "telemetry", "toolexec",
		"internal/firing", "internal/runctx", "internal/process", "internal/rooted", "internal/semconv", "internal/strictjson", "internal/version",
		"internal/worktree", "internal/yamlfile",
	}, Modules: core},
	"coordinator/wire": {Ours: []string{"agent", "durable", "pipeline"}},
	"coordinator": {Ours: []string{
		"action", "agent", "coordinator/wire", "durable", "durable/command", "durable/waiver", "hooks", "pipeline", "policy", "registry", "telemetry",
		"toolexec", "internal/firing", "internal/invisible", "internal/runctx", "internal/rooted", "internal/semconv", "internal/strictjson", "internal/version",
		"internal/yamlfile",
	}, Modules: core},
	"coordinator/internal/cause": {},
	"coordinator/internal/rates": {Modules: []string{"golang.org/x/time"}},
	"coordinator/internal/whatif": {Ours: []string{
		"agent", "coordinator", "coordinator/wire", "hooks", "internal/storedruns", "internal/yamlfile", "policy", "policy/backtest", "policy/policytest", "policy/recorded",
	}, Modules: values},
	"coordinator/api": {Ours: []string{"agent", "coordinator", "coordinator/internal/cause", "coordinator/internal/rates", "coordinator/internal/whatif", "coordinator/wire", "durable", "durable/approval", "durable/waiver", "hooks", "internal/invisible", "internal/storedruns", "internal/strictjson", "policy/library"}, Modules: []string{
		"github.com/danielgtaylor/huma/v2", "github.com/samber/lo",
	}},
	"coordinator/web": {Ours: []string{
		"agent", "coordinator", "coordinator/internal/rates", "coordinator/wire", "durable", "durable/approval", "durable/memory", "hooks", "internal/inputform", "internal/invisible",
		"internal/linediff", "internal/markup", "internal/strictjson", "internal/yamlfile", "pipeline", "policy/backtest", "policy/library",
	}, Modules: values},
	"coordinator/client": {Ours: []string{"agent", "coordinator/internal/cause", "coordinator/wire", "durable", "internal/version"}, Modules: []string{"go.opentelemetry.io/otel"}},
	"policy": {
		Ours: []string{
			"agent", "hooks", "hooks/pii", "hooks/redact", "action", "policy/internal/condition", "policy/library", "policy/internal/file", "policy/internal/points", "policy/internal/provenance", "internal/invisible", "policy/tools",
			"internal/runctx", "internal/reserved", "internal/strictjson", "internal/version", "internal/yamlfile",
		},
		Modules: append(values, "cel.dev/cel-go"),
	},

	// The packages that policies build on.
	"policy/bash":            {Modules: append(values, "mvdan.cc/sh/v3")},
	"policy/library":         {Ours: []string{"internal/near"}}, // files
	"policy/tools":           {Ours: []string{"agent", "internal/strictjson"}},
	"policy/internal/points": {Ours: []string{"action", "hooks", "internal/yamlfile"}, Modules: core},
	"policy/internal/file": {
		Ours:    []string{"hooks", "hooks/pii", "hooks/redact", "internal/lazy", "internal/near", "internal/yamlfile", "policy/internal/points", "policy/library"},
		Modules: core,
	},
	"policy/internal/provenance": {
		Ours:    []string{"agent", "hooks", "internal/strictjson", "policy/internal/condition", "policy/tools"},
		Modules: slices.Concat(core, []string{"cel.dev/cel-go", "go.yaml.in/yaml/v4", "golang.org/x/text"}),
	},
	"policy/recorded": {Ours: []string{"agent", "drivers/replay", "internal/semconv", "internal/strictjson"}, Modules: core},
	"policy/policytest": {
		Ours:    []string{"action", "agent", "drivers/replay", "hooks", "hooks/fire", "internal/near", "internal/yamlfile", "policy", "policy/internal/condition", "policy/internal/points", "policy/internal/provenance", "policy/recorded"},
		Modules: values,
	},
	"policy/backtest": {
		Ours:    []string{"agent", "hooks", "builder", "capability", "drivers/replay", "internal/invisible", "internal/lazy", "internal/markup", "internal/strictjson", "policy/recorded"},
		Modules: values,
	},
	"policy/internal/condition": {
		Ours:    []string{"agent", "hooks", "internal/near", "internal/strictjson", "policy/bash"},
		Modules: append(values, "cel.dev/cel-go"),
	},

	// The command line.
	"cmd/grapnel":                         {Ours: []string{"cmd/grapnel/internal/cli"}},
	"cmd/grapnel/internal/agentfile":      {Ours: []string{"hooks", "registry", "internal/yamlfile"}, Modules: values},
	"cmd/grapnel/internal/timeline":       {Ours: append(slices.Clone(observed), "internal/invisible"), Modules: append(values, "charm.land/lipgloss/v2")},
	"cmd/grapnel/internal/history":        {Ours: []string{"agent", "coordinator/wire", "internal/strictjson"}},
	"cmd/grapnel/internal/events":         {Ours: append(slices.Clone(observed), "action", "durable/waiver"), Modules: values},
	"cmd/grapnel/internal/cli":            commandLine("cli/console cli/blueprints cli/gate cli/hooks cli/mcp cli/pipeline cli/approvals cli/run cli/runs cli/serve cli/stores", "internal/near", "internal/version"),
	"cmd/grapnel/internal/cli/console":    commandLine("timeline", "internal/near"),
	"cmd/grapnel/internal/cli/agents":     commandLine("timeline events agentfile cli/console", "internal/inputform", "internal/process", "internal/reserved", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/storage":    commandLine("timeline events cli/console cli/agents"),
	"cmd/grapnel/internal/cli/worker":     commandLine("timeline events cli/console cli/agents cli/storage", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/blueprints": commandLine("timeline cli/console cli/storage", "internal/strictjson", "internal/yamlfile"),
	"cmd/grapnel-gate":                    {Ours: []string{"internal/hostgate", "internal/hostgate/engine"}},
	"cmd/grapnel/internal/cli/gate":       commandLine("cli/console", "internal/hostgate", "internal/hostgate/engine"),
	"cmd/grapnel/internal/cli/hooks":      commandLine("timeline cli/console cli/agents cli/storage", "internal/storedruns", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/mcp":        commandLine("cli/console cli/agents cli/storage cli/worker", "guard", "internal/linediff", "internal/mcpproxy"),
	"cmd/grapnel/internal/cli/pipeline":   commandLine("timeline events cli/console cli/agents cli/storage cli/worker cli/blueprints", "internal/rooted", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/approvals":  commandLine("timeline cli/console cli/agents cli/storage", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/run":        commandLine("timeline cli/console cli/agents cli/storage", "internal/near"),
	"cmd/grapnel/internal/cli/runs":       commandLine("timeline events history agentfile cli/console cli/agents cli/storage cli/worker cli/blueprints", "internal/near", "internal/yamlfile"),
	"cmd/grapnel/internal/cli/stores":     commandLine("cli/console cli/storage"),
	"cmd/grapnel/internal/cli/serve":      commandLine("timeline events cli/console cli/agents cli/storage cli/worker cli/pipeline cli/runs", "internal/version", "internal/yamlfile"),

	// Resources that tests need from the machine.
	"internal/parts":       {Test: true},
	"internal/snippets":    {Test: true},
	"internal/exampletest": {Test: true},
	"internal/answertest":  {Ours: []string{"agent", "durable"}, Test: true},
	"internal/patched":     {Ours: []string{"internal/parts"}, Test: true},
	"internal/upgrade":     {Ours: []string{"internal/parts"}, Test: true},
	"internal/jail":        {Ours: []string{"internal/parts"}, Modules: []string{"golang.org/x/sys"}, Test: true},
	"internal/evasion":     {Ours: []string{"agent", "hooks", "hooks/hookstest", "internal/strictjson"}, Test: true},
	"internal/modeltest": {
		Ours:    []string{"agent", "agent/agenttest", "drivers", "processor", "internal/parts"},
		Modules: core, Test: true,
	},

	// The check of names and comments.
	"internal/picture": {},
	"internal/prose":   {},

	// Examples.
	"examples/...": {Ours: []string{"..."}, Modules: append(core,
		"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric", // in a program that is observed
		"github.com/modelcontextprotocol/go-sdk", // an MCP server to talk to
	), Shown: true},
}

// heavy lists the packages whose transitive dependencies must all be in light: users of the framework compile them.
var heavy = []string{"agent", "processor", "toolexec", "continuation", "hooks", "telemetry", "capability", "builder"}

// light lists every module on which these packages may depend, directly or indirectly.
var light = slices.Concat(core, schemas, []string{
	"github.com/go-json-experiment/json",
	"github.com/cespare/xxhash/v2",
	"github.com/go-logr/logr",
	"github.com/go-logr/stdr",
	"go.opentelemetry.io/auto/sdk",
	"golang.org/x/text",
})

func TestEveryPackageHasALayer(t *testing.T) {
	for _, p := range ours(listPackages(t)) {
		_, _, known := layerOf(p.rel())
		assert.True(t, known, "package %q is not in the table of layers: add a line to layers_test.go "+
			"that says what it may import, and a line to doc.go and ARCHITECTURE.md", p.rel())
	}
}

func TestEveryLayerIsAPackage(t *testing.T) {
	built := lo.SliceToMap(ours(listPackages(t)), func(p listed) (string, bool) {
		key, _, _ := layerOf(p.rel())
		return key, true
	})
	for _, key := range slices.Sorted(maps.Keys(layers)) {
		if layers[key].Planned {
			assert.False(t, built[key], "package %q is here now: delete its Planned mark in layers_test.go", key)
			continue
		}
		assert.True(t, built[key], "the table of layers has a line for %q, which is no package: "+
			"delete the line, or mark it Planned until the package comes", key)
	}
}

func TestThePlanNamesEveryPublicPackage(t *testing.T) {
	plan, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	words := strings.FieldsFunc(string(plan), func(r rune) bool { return r != '/' && r != '-' && !unicode.IsLetter(r) })
	for _, key := range slices.Sorted(maps.Keys(layers)) {
		name := strings.TrimSuffix(key, "/...")
		if name != "" && !strings.Contains("/"+name, "/internal/") {
			assert.Contains(t, words, name, "the plan in doc.go has no word on package %q", name)
		}
	}
}

func TestArrowsOnlyGoDown(t *testing.T) {
	for _, wrong := range wrongImports(listPackages(t)) {
		assert.Fail(t, wrong)
	}
}

// tooHeavy lists packages that the command must not link. Each looks up methods by names that are not constants,
// after which the linker keeps every exported method of the program: this doubled the size of the command
// (docs/adr/0001).
var tooHeavy = []string{
	"google.golang.org/grpc", "go.temporal.io", "golang.org/x/net/trace", "google.golang.org/genai", "github.com/openai/openai-go/v3", "github.com/google/go-cmp",
	"cloud.google.com/go",
}

func TestTheCommandIsLight(t *testing.T) {
	packages := listPackages(t)
	for _, path := range packages[module+"/cmd/grapnel"].Deps {
		for _, heavy := range tooHeavy {
			assert.False(t, path == heavy || strings.HasPrefix(path, heavy+"/"), "cmd/grapnel links %q: %s stands in tooHeavy, see docs/adr/0001", path, heavy)
		}
		if d := packages[path]; d.isOurs() {
			assert.NotContains(t, d.Imports, "html/template", "package %q is linked into cmd/grapnel: write pages with internal/markup, see docs/adr/0001", path)
		}
	}
}

// The gate starts for each call of a coding agent, so it links nothing that it does not use.
func TestTheGateIsLight(t *testing.T) {
	heavy := []string{
		"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "github.com/anthropics", "github.com/modelcontextprotocol", "modernc.org",
		"github.com/jackc", "github.com/spf13", "charm.land", module + "/durable", module + "/drivers", module + "/toolexec", module + "/telemetry",
	}
	for _, path := range listPackages(t)[module+"/cmd/grapnel-gate"].Deps {
		for _, prefix := range heavy {
			assert.False(t, strings.HasPrefix(path, prefix), "cmd/grapnel-gate links %q", path)
		}
	}
}

// withoutHTTP lists the core packages that must not depend on net/http, directly or indirectly.
var withoutHTTP = []string{"agent", "hooks", "toolexec", "processor", "continuation"}

func TestTheCoreHasNoHTTP(t *testing.T) {
	packages := listPackages(t)
	for _, name := range withoutHTTP {
		assert.NotContains(t, packages[module+"/"+name].Deps, "net/http", "package %q pulls in net/http, with a megabyte of TLS", name)
	}
}

// apart lists packages of this module on which rules and their actions must not depend, directly or indirectly: a
// program that has its own agents and only judges their calls would link them all.
var apart = []string{"builder", "capability", "continuation", "durable", "processor", "telemetry", "toolexec"}

// lightRules lists every module on which rules and their actions may depend, directly or indirectly.
var lightRules = slices.Concat(values, []string{
	"cel.dev/cel-go", "cel.dev/expr", "github.com/antlr4-go/antlr/v4", "golang.org/x/exp", "go.yaml.in/yaml/v3", "google.golang.org/protobuf", // conditions
	"google.golang.org/genproto/googleapis/api", "google.golang.org/genproto/googleapis/rpc",
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/trace", "github.com/cespare/xxhash/v2", // the span of a command
	"go.yaml.in/yaml/v4", "github.com/go-json-experiment/json", "golang.org/x/sys", "golang.org/x/text", "mvdan.cc/sh/v3",
})

func TestRulesAreLight(t *testing.T) {
	packages := listPackages(t)
	for _, name := range []string{"policy", "action"} {
		for _, path := range packages[module+"/"+name].Deps {
			switch d := packages[path]; {
			case d.isOurs():
				assert.NotContains(t, apart, d.rel(), "package %q depends on %q: let an interface stand between them, as capability.Policy does", name, d.rel())
			case !d.Standard:
				assert.Contains(t, lightRules, d.Module.Path, "package %q pulls in %q: keep it out, or list the module in lightRules with a decision in docs/adr", name, path)
			}
		}
	}
}

func TestWrongImportsAreFound(t *testing.T) {
	stdStrings := listed{ImportPath: "strings", Standard: true}
	stdTesting := listed{ImportPath: "testing", Standard: true}
	own := func(rel string, imports ...string) listed {
		return listed{ImportPath: module + "/" + rel, Module: fromModule{module}, Imports: imports}
	}
	other := func(mod, pkg string) listed {
		return listed{ImportPath: mod + pkg, Module: fromModule{mod}}
	}

	for name, tc := range map[string]struct {
		packages []listed
		want     string // a part of the only sentence, or "" for none
	}{
		"the standard library is free": {[]listed{own("internal/plog", "strings"), stdStrings}, ""},
		"an arrow that is drawn":       {[]listed{own("agent", module+"/internal/plog"), own("internal/plog")}, ""},
		"an arrow up":                  {[]listed{own("agent", module+"/hooks"), own("hooks")}, `"agent" imports our "hooks"`},
		"an arrow sideways":            {[]listed{own("processor", module+"/hooks"), own("hooks")}, `"processor" imports our "hooks"`},
		"a module that is listed":      {[]listed{own("agent", "github.com/samber/mo"), other("github.com/samber/mo", "")}, ""},
		"a module that is not": {
			[]listed{own("agent", "example.com/x/y"), other("example.com/x", "/y")}, `"agent" imports "example.com/x/y"`,
		},
		"another module below the path of a listed one": {
			[]listed{own("agent", "go.opentelemetry.io/otel/sdk/trace"), other("go.opentelemetry.io/otel/sdk", "/trace")},
			`"agent" imports "go.opentelemetry.io/otel/sdk/trace"`,
		},
		"testify in shipped code": {
			[]listed{own("agent", "github.com/stretchr/testify/assert"), other("github.com/stretchr/testify", "/assert")},
			"outside its tests",
		},
		"testing in shipped code": {[]listed{own("agent", "testing"), stdTesting}, "outside its tests"},
		"testify where tests are the purpose": {
			[]listed{
				own("agent/agenttest", "testing", "github.com/stretchr/testify/assert"),
				stdTesting, other("github.com/stretchr/testify", "/assert"),
			}, "",
		},
		"an example may import any of ours": {[]listed{own("examples/one", module+"/hooks"), own("hooks")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := wrongImports(lo.KeyBy(tc.packages, func(p listed) string { return p.ImportPath }))
			if tc.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Contains(t, got[0], tc.want)
		})
	}
}

func TestWhatUsersCompileIsLight(t *testing.T) {
	packages := listPackages(t)
	for _, name := range heavy {
		for _, path := range packages[module+"/"+name].Deps {
			d := packages[path]
			if d.Standard || d.isOurs() {
				continue
			}
			assert.Contains(t, light, d.Module.Path, "package %q pulls in %q: keep heavy dependencies out of "+
				"agent … builder, or list the module as light in layers_test.go with a decision in docs/adr", name, path)
		}
	}
}

// wrongImports returns a sentence for each import in shipped code that the table does not allow.
func wrongImports(packages map[string]listed) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, p := range ours(packages) {
		key, allowed, known := layerOf(p.rel())
		if !known {
			continue // TestEveryPackageHasALayer says so
		}
		for _, path := range p.Imports {
			imported := packages[path]
			_, importedLayer, _ := layerOf(imported.rel())
			forTests := path == "testing" ||
				imported.isOurs() && importedLayer.Test ||
				slices.Contains(testOnly, imported.Module.Path)
			switch {
			case forTests && !allowed.Test && (!allowed.Shown || !importedLayer.Test):
				say("package %q imports %q outside its tests: it would be linked into every program "+
					"that uses the package", p.rel(), path)
			case forTests, imported.Standard:
			case imported.isOurs() && !covers(allowed.Ours, imported.rel()):
				say("package %q imports our %q: arrows only go down; move the code, or draw the arrow "+
					"in the line for %q in layers_test.go and say why in the commit", p.rel(), imported.rel(), key)
			case !imported.isOurs() && !slices.Contains(allowed.Modules, imported.Module.Path):
				say("package %q imports %q: the line for %q in layers_test.go does not list its module %q; "+
					"a new dependency there needs a decision in docs/adr", p.rel(), path, key, imported.Module.Path)
			}
		}
	}
	return wrong
}

// listed is the part of go list's output for a package that the test needs.
type listed struct {
	ImportPath string     `json:"ImportPath"`
	Standard   bool       `json:"Standard"`
	Module     fromModule `json:"Module"`
	Imports    []string   `json:"Imports"`
	Deps       []string   `json:"Deps"`
}

type fromModule struct {
	Path string `json:"Path"`
}

func (p listed) isOurs() bool { return p.Module.Path == module }

// rel returns the path below the module root, "" for the root itself.
func (p listed) rel() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// listPackages returns every package of the module and all their dependencies, by import path, as the go command
// lists them.
func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	touchSources(t)
	cmd := exec.CommandContext(t.Context(),
		"go", "list", "-deps", "-json=ImportPath,Standard,Module,Imports,Deps", "./...")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		require.NoError(t, err, "list packages: %s", exit.Stderr)
	}
	require.NoError(t, err, "list packages: the go command must be on the PATH")

	packages := map[string]listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			require.NoError(t, err, "read what go list says")
		}
		packages[p.ImportPath] = p
	}
}

// touchSources reads the status of every source file. The go command caches a passed test together with the files
// that the test process itself opened, but not those that its child processes read. Without this function, the test
// would not run again after a changed import.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case filepath.Ext(path) == ".go" || entry.Name() == "go.mod":
			_, err = os.Stat(path)
		}
		return err
	})
	require.NoError(t, err, "look at the sources")
}

// ours returns the packages of this module in the order of their paths.
func ours(packages map[string]listed) []listed {
	own := lo.Filter(slices.Collect(maps.Values(packages)), func(p listed, _ int) bool { return p.isOurs() })
	slices.SortFunc(own, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return own
}

// layerOf returns the line of the table for a package: its own line, or else the nearest line above that ends in
// "/...".
func layerOf(rel string) (key string, l layer, ok bool) {
	if l, ok := layers[rel]; ok {
		return rel, l, true
	}
	for dir := rel; dir != ""; {
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			break
		}
		dir = dir[:i]
		if l, ok := layers[dir+"/..."]; ok {
			return dir + "/...", l, true
		}
	}
	return "", layer{}, false
}

// covers reports whether one of the patterns matches the package.
func covers(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		below, open := strings.CutSuffix(pattern, "...")
		return pattern == rel || open && strings.HasPrefix(rel, below)
	})
}
