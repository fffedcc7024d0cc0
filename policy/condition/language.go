package condition

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/grapnel-go/grapnel/hooks"
)

const (
	// defaultCost is how much one evaluation may cost where Options do not say: at most some tens of milliseconds.
	defaultCost uint64 = 100_000
	// maxText is how long the text of a condition may be, in bytes.
	maxText = 16 << 10

	maxNodes  = 4000 // of a parsed expression, macros written out
	maxNested = 100
	maxRegex  = 2000 // instructions of a compiled regular expression
	maxRange  = 10_000
)

// Options say what conditions can name besides the variables of their hook point. The zero value is ready to be used.
type Options struct {
	// Variables are read as vars.NAME, typed by their values: strings, bools, ints, floats, lists and maps of them, as YAML
	// and JSON give them. A string named "workspace" is also the variable workspace.
	Variables map[string]any
	// Actions are the ids of the actions whose results a condition may name. Nil means that they are not known: any id
	// then passes when a condition is compiled, and one that has no result is an error when it is evaluated.
	Actions []string
	// Functions are added to the language. Their names must be free.
	Functions []Function
	// CostLimit bounds each evaluation; zero means 100,000. See the package's words on cost.
	CostLimit uint64
	// Home is what "~" stands for in paths; empty means the home directory of the process.
	Home string
	// Workspace is what relative paths are relative to, where Variables have no "workspace"; empty means the working
	// directory of the process at the time of New.
	Workspace string
}

// Language is what conditions can be written in: CEL with the variables of each hook point and the functions of this
// package. It is immutable and safe for concurrent use.
type Language struct {
	options   Options
	constants map[string]*variable // vars.*
	functions map[string]*function
	workspace string
	home      string
	base      func() (*cel.Env, error)
	bindings  map[string]*functions.Overload // of the base, by overload and by name

	mu     sync.Mutex
	points map[hooks.PointName]*dialect
}

// dialect is the language at one point.
type dialect struct {
	*Language

	point hooks.PointName
	env   *cel.Env
	names map[string]*variable
}

// New makes a language. The error joins everything that is wrong with the options.
func New(o Options) (*Language, error) {
	if o.CostLimit == 0 {
		o.CostLimit = defaultCost
	}
	l := &Language{options: o, points: map[hooks.PointName]*dialect{}, functions: map[string]*function{}}
	var errs []error
	l.constants, errs = constantsOf(o.Variables)
	for _, f := range slices.Concat(l.builtin(), o.Functions) {
		errs = append(errs, l.add(f))
	}
	errs = append(errs, l.setPlaces())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("making the language of conditions: %w", err)
	}
	l.constants["workspace"] = constantVariable("workspace", cel.StringType, types.String(l.workspace))
	l.base = sync.OnceValues(l.newBase)
	return l, nil
}

// setPlaces finds the workspace and the home directory.
func (l *Language) setPlaces() (err error) {
	l.workspace, l.home = l.options.Workspace, l.options.Home
	if own, ok := l.options.Variables["workspace"].(string); ok {
		l.workspace = own
	}
	if l.workspace == "" {
		l.workspace, err = os.Getwd()
	}
	if l.home == "" {
		l.home, _ = os.UserHomeDir() // without one, "~" is an error when it is used
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

// dialectAt returns the language of a point, made when it is first needed.
func (l *Language) dialectAt(point hooks.PointName) (*dialect, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.points[point]; d != nil {
		return d, nil
	}
	if _, known := hooks.PointNamed(string(point)); !known {
		return nil, fmt.Errorf("there is no hook point %q", point)
	}
	base, err := l.base()
	if err != nil {
		return nil, fmt.Errorf("making the language of conditions: %w", err)
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
		return nil, fmt.Errorf("making the language of conditions at %s: %w", point, err)
	}
	l.points[point] = d
	return d, nil
}

// Variables returns the names that conditions at a point can use, with their types as CEL writes them. It is empty for a
// point that does not exist.
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
