package condition

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/grapnel-go/grapnel/hooks"
)

const (
	// defaultCost is the default for Options.CostLimit: at most some tens of milliseconds.
	defaultCost uint64 = 100_000
	// maxText is the maximum length of a condition, in bytes.
	maxText = 16 << 10

	maxNodes  = 4000 // in a parsed expression, after macro expansion
	maxNested = 100
	maxRegex  = 2000 // in instructions of the compiled regular expression
	maxRange  = 10_000
)

// Options configure a Language. The zero value is ready for use.
type Options struct {
	// Variables are available as vars.NAME, with the types of their values: strings, bools, ints, floats, and lists
	// and maps of these, as decoded from YAML or JSON. A string named "workspace" also sets the variable workspace.
	Variables map[string]any
	// Actions lists the IDs of actions whose results a condition may name. Nil means that they are unknown: any ID
	// then compiles, and an ID without a result is an error at evaluation.
	Actions []string
	// Functions are added to the language. Their names must not be in use.
	Functions []Function
	// CostLimit bounds each evaluation; zero means 100,000. See "Cost" in the package comment.
	CostLimit uint64
	// Home is the directory that "~" stands for in paths; empty means the process's home directory.
	Home string
	// Workspace is the base of relative paths if Variables has no "workspace"; empty means the process's working
	// directory when New is called.
	Workspace string
}

// Language compiles conditions: CEL with the variables of each hook point and this package's functions. It is
// immutable and safe for concurrent use.
type Language struct {
	options   Options
	number    int64                // unique
	constants map[string]*variable // vars.*
	functions map[string]*function
	workspace string
	home      string
	base      func() (*cel.Env, error)
	bindings  map[string]*functions.Overload // from the base environment, by overload and by name

	mu     sync.Mutex
	points map[hooks.PointName]*dialect
}

// languages counts the languages in the process.
var languages atomic.Int64

// dialect is the language at one point.
type dialect struct {
	*Language

	point hooks.PointName
	env   *cel.Env
	names map[string]*variable
}

// New returns a Language. The error joins all problems with the options.
func New(o Options) (*Language, error) {
	if o.CostLimit == 0 {
		o.CostLimit = defaultCost
	}
	l := &Language{options: o, number: languages.Add(1), points: map[hooks.PointName]*dialect{}, functions: map[string]*function{}}
	var errs []error
	l.constants, errs = constantsOf(o.Variables)
	for _, f := range slices.Concat(l.builtin(), o.Functions) {
		errs = append(errs, l.add(f))
	}
	for _, f := range o.Functions {
		if added := l.functions[f.Name]; added != nil {
			added.once = !f.Pure
		}
	}
	errs = append(errs, l.setPlaces())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("creating the language of conditions: %w", err)
	}
	l.constants["workspace"] = constantVariable("workspace", cel.StringType, types.String(l.workspace))
	l.base = sync.OnceValues(l.newBase)
	return l, nil
}

// setPlaces sets the workspace and the home directory.
func (l *Language) setPlaces() (err error) {
	l.workspace, l.home = l.options.Workspace, l.options.Home
	if own, ok := l.options.Variables["workspace"].(string); ok {
		l.workspace = own
	}
	if l.workspace == "" {
		l.workspace, err = os.Getwd()
	}
	if l.home == "" {
		l.home, _ = os.UserHomeDir() // if unknown, using "~" is an error
	}
	return err
}

func (l *Language) newBase() (*cel.Env, error) {
	known, err := newProvider()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(known),
		cel.CustomTypeProvider(known),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(),
		cel.ParserExpressionSizeLimit(maxText),
		cel.ParserRecursionLimit(maxNested),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.EagerlyValidateDeclarations(true),
		cel.OptionalTypes(),
		ext.Strings(ext.StringsMaxPrecision(100)),
		ext.Lists(ext.ListsMaxRangeSize(maxRange)),
		ext.Sets(),
		ext.Math(),
		ext.Bindings(),
		ext.TwoVarComprehensions(),
		ext.Encoders(),
	}
	for _, name := range slices.Sorted(maps.Keys(l.functions)) {
		options = append(options, l.functions[name].declare())
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	l.bindings, err = bindingsOf(env)
	return env, err
}

// dialectAt returns a point's dialect. It is created on first use.
func (l *Language) dialectAt(point hooks.PointName) (*dialect, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.points[point]; d != nil {
		return d, nil
	}
	if _, known := hooks.PointNamed(string(point)); !known {
		return nil, fmt.Errorf("unknown hook point %q", point)
	}
	base, err := l.base()
	if err != nil {
		return nil, fmt.Errorf("creating the language of conditions: %w", err)
	}
	d := &dialect{Language: l, point: point, names: maps.Clone(l.constants)}
	for i := range variables {
		if v := &variables[i]; v.at.has(point) {
			d.names[v.name] = v
		}
	}
	var declared []cel.EnvOption
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		declared = append(declared, cel.Variable(name, d.names[name].kind))
	}
	if d.env, err = base.Extend(declared...); err != nil {
		return nil, fmt.Errorf("creating the language of conditions at %s: %w", point, err)
	}
	l.points[point] = d
	return d, nil
}

// Variables returns the names that conditions at a point can use, with their types in CEL's notation. It is empty for
// an unknown point.
func (l *Language) Variables(at hooks.PointName) map[string]string {
	d, err := l.dialectAt(at)
	if err != nil {
		return nil
	}
	out := make(map[string]string, len(d.names))
	for name, v := range d.names {
		out[name] = cel.FormatCELType(v.kind)
	}
	return out
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
