package condition

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/samber/lo"
)

// CEL adds a call's cost to the total after the call, which is too late if the call turns a kilobyte into a
// gigabyte of text. With cost tracking, each call is therefore priced and paid before it runs. The price is about one
// unit for each value and for each ten bytes of text that the call reads or creates. The cost limit therefore bounds
// the size of every result and the duration of every call.

// Sizes are in tenths of the cost unit: one for a byte of text, perValue for a value.
const perValue = 10

// largest is the maximum size; larger sizes are cut to it. Sums of a few sizes do not overflow.
const largest = math.MaxInt / 8

// cheap holds the functions whose work does not depend on the size of their arguments, and the functions that CEL
// itself inserts into loops and optional values. CEL charges one unit for each call.
var cheap = lo.Keyify([]string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.Subtract, operators.Multiply, operators.Divide,
	operators.Modulo, operators.Negate, "size", "type", "dyn", "optional.of", "optional.none", "hasValue", "value", "or",
	"orValue", "cel.@mapInsert", "cel.@block",
	"matches", // one pass over the text; CEL compiles its pattern beforehand
})

// prepaid is a call whose cost is paid before it runs.
type prepaid struct {
	interpreter.InterpretableCall

	args  []interpreter.InterpretableV2
	run   func(frame *interpreter.ExecutionFrame, args []ref.Val) ref.Val
	price func(args []ref.Val, most int) (int, error)
}

// prepay returns the decorator that makes calls prepaid.
func (d *dialect) prepay(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	name := call.Function()
	if _, ok := cheap[name]; ok {
		return i, nil
	}
	p := &prepaid{InterpretableCall: call, args: call.Args(), price: priceOf(name)}
	run := d.implementation(name, call.OverloadID())
	if run == nil && name != operators.Equals && name != operators.NotEquals {
		return nil, fmt.Errorf("function %s has no implementation", name)
	}
	p.run = run
	if exact := comparisons[name]; exact != nil {
		p.run = func(frame *interpreter.ExecutionFrame, args []ref.Val) ref.Val {
			return exact(func(args []ref.Val) ref.Val { return run(frame, args) })(args)
		}
	}
	if f := d.functions[name]; f != nil {
		p.price = func(args []ref.Val, most int) (int, error) {
			return int(min(max(f.Cost, 1), largest/perValue))*perValue + sizeOfAll(args, most), nil
		}
	}
	return p, nil
}

// OverloadID returns the call's overload. It is empty for the operator in, which CEL would replace by a lookup among
// converted numbers.
func (p *prepaid) OverloadID() string {
	if p.Function() == operators.In {
		return ""
	}
	return p.InterpretableCall.OverloadID()
}

// implementation returns an overload's code. For a function that reads the input, the activation holds the code.
func (d *dialect) implementation(name, overload string) func(*interpreter.ExecutionFrame, []ref.Val) ref.Val {
	found := d.bindings[overload]
	if found == nil {
		found = d.bindings[name]
	}
	if found == nil {
		return nil
	}
	missing := func() ref.Val { return types.NewErr("no such overload: %s", name) }
	if found.LateBound {
		member := d.functions[name] != nil && d.functions[name].Member
		return func(frame *interpreter.ExecutionFrame, args []ref.Val) ref.Val {
			matched := overload
			if found.LateBoundDispatch != nil {
				var ok bool
				if matched, ok = found.LateBoundDispatch(member, args...); !ok {
					return missing()
				}
			}
			if run, ok := frame.ResolveFunction(name); ok {
				return run(matched, args...)
			}
			return missing()
		}
	}
	return func(_ *interpreter.ExecutionFrame, args []ref.Val) ref.Val {
		fits := found.OperandTrait == 0 || len(args) > 0 && args[0].Type().HasTrait(found.OperandTrait)
		switch {
		case fits && len(args) == 1 && found.Unary != nil:
			return found.Unary(args[0])
		case fits && len(args) == 2 && found.Binary != nil:
			return found.Binary(args[0], args[1])
		case fits && found.Function != nil:
			return found.Function(args...)
		case len(args) > 0 && args[0].Type().HasTrait(traits.ReceiverType):
			if receiver, ok := args[0].(traits.Receiver); ok {
				return receiver.Receive(name, overload, args[1:])
			}
		}
		return missing()
	}
}

// Exec evaluates the arguments, pays, and runs the call.
func (p *prepaid) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(p.args))
	var unknown *types.Unknown
	for i, arg := range p.args {
		v := arg.Exec(frame)
		if types.IsError(v) {
			return v
		}
		unknown, _ = types.MaybeMergeUnknowns(v, unknown)
		args[i] = v
	}
	if unknown != nil {
		return unknown
	}
	if bill := frame.CostTracker(); bill != nil {
		most := largest
		if bill.Limit != nil {
			left := *bill.Limit - min(bill.ActualCost(), *bill.Limit)
			most = int(min(left, largest/perValue-1)+1) * perValue
		}
		price, err := p.price(args, most)
		if err != nil {
			return types.LabelErrNode(p.ID(), types.WrapErr(err))
		}
		cost := types.Uint(max(price, perValue)+perValue-1) / perValue
		bill.EvalUnary(frame, p.ID(), payment{}, cost, nil)
	}
	return types.LabelErrNode(p.ID(), p.run(frame, args))
}

// Eval works like Exec for an activation.
func (p *prepaid) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, p.Exec)
}

// payment represents a prepaid call in CEL's cost tracking. Its argument is the cost.
type payment struct{}

// Function returns a name that no expression can write.
func (payment) Function() string { return "@prepaid" }

// OverloadID returns the same name.
func (payment) OverloadID() string { return "@prepaid" }

// payments reports the costs of payments to CEL's cost tracking.
type payments struct{}

// CallCost returns the cost that was paid; nil for calls that are not prepaid.
func (payments) CallCost(name, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if name != (payment{}).Function() {
		return nil
	}
	cost, _ := args[0].(types.Uint)
	return (*uint64)(&cost)
}

// bindingsOf returns the implementations of all functions in an environment, by overload and by name.
func bindingsOf(env *cel.Env) (map[string]*functions.Overload, error) {
	all := map[string]*functions.Overload{}
	for name, f := range env.Functions() {
		bound, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
		for _, b := range bound {
			all[b.Operator] = b
		}
	}
	return all, nil
}

// sizeOf returns a value's size, including nested values. It stops when the size exceeds most: a value may contain
// another value many times, so its size can exceed the memory that it takes.
func sizeOf(v ref.Val, most int) int { return sizeWithin(v, most, 0) }

const deepest = 10_000 // the nesting limit of JSON

func sizeWithin(v ref.Val, most, depth int) int {
	size := perValue
	if depth > deepest {
		return most + 1
	}
	switch v := v.(type) {
	case types.String:
		size += len(v)
	case types.Bytes:
		size += len(v)
	case *types.Optional:
		if v.HasValue() {
			size += sizeWithin(v.GetValue(), most-size, depth+1)
		}
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		for i := types.Int(0); i < n && size <= most; i++ {
			size += sizeWithin(v.Get(i), most-size, depth+1)
		}
	case traits.Mapper:
		for it := v.Iterator(); size <= most && it.HasNext() == types.True; {
			key := it.Next()
			size += sizeWithin(key, most-size, depth+1)
			size += sizeWithin(v.Get(key), most-size, depth+1)
		}
	}
	return size
}

func sizeOfAll(args []ref.Val, most int) int {
	size := 0
	for _, arg := range args {
		if size <= most {
			size += sizeOf(arg, most-size)
		}
	}
	return size
}

// smaller returns the size of the smaller of two values. It reads at most a few times as much of the larger value.
func smaller(a, b ref.Val, most int) int {
	for reach := 64 * perValue; ; reach *= 4 {
		reach = min(reach, most)
		size := min(sizeOf(a, reach), sizeOf(b, reach))
		if size <= reach || reach == most {
			return size
		}
	}
}

// times returns the product, at most largest.
func times(a, b int) int {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > largest {
		return largest
	}
	return int(lo)
}

// textSize returns the length of a string in bytes; 0 for other values.
func textSize(v ref.Val) int {
	text, _ := Text(v)
	return len(text)
}

func elements(v ref.Val) int {
	if list, ok := v.(traits.Lister); ok {
		n, _ := list.Size().(types.Int)
		return int(min(n, largest))
	}
	return 0
}

// priceOf returns the function that computes a call's price from its arguments: the size of the data that the call
// reads and creates. Prices above most are not exact.
func priceOf(function string) func(args []ref.Val, most int) (int, error) {
	if price := prices[function]; price != nil {
		return price
	}
	return func(args []ref.Val, most int) (int, error) { return sizeOfAll(args, most), nil }
}

// prices holds the functions whose result is larger than their arguments, or that read an argument more than once.
var prices = map[string]func(args []ref.Val, most int) (int, error){
	operators.Equals:    func(args []ref.Val, most int) (int, error) { return smaller(args[0], args[1], most), nil },
	operators.NotEquals: func(args []ref.Val, most int) (int, error) { return smaller(args[0], args[1], most), nil },
	operators.Add: func(args []ref.Val, most int) (int, error) {
		if n := elements(args[0]); n > 0 || elements(args[1]) > 0 {
			// Adding two lists copies neither, except the second one in CEL's loops.
			return times(elements(args[1])+1, perValue), nil
		}
		return sizeOfAll(args, most), nil
	},
	operators.In: func(args []ref.Val, most int) (int, error) {
		if _, isMap := args[1].(traits.Mapper); isMap {
			return sizeOf(args[0], most), nil
		}
		if _, isText := Text(args[0]); isText {
			return times(elements(args[1]), perValue+textSize(args[0])/perValue), nil
		}
		return times(elements(args[1]), sizeOf(args[0], most)), nil
	},
	"replace":     priceOfReplace,
	"split":       priceOfSplit,
	"join":        priceOfJoin,
	"format":      priceOfFormat,
	"indexOf":     priceOfSearch,
	"lastIndexOf": priceOfSearch,
	"lists.range": func(args []ref.Val, _ int) (int, error) {
		n, _ := args[0].(types.Int)
		return times(int(n), perValue), nil
	},
	"json.encode":           priceOfEncoding,
	"yaml.encode":           priceOfEncoding,
	"json.parse":            func(args []ref.Val, _ int) (int, error) { return times(textSize(args[0]), perValue), nil },
	"yaml.parse":            priceOfYAML,
	"sort":                  priceOfSort,
	"distinct":              func(args []ref.Val, most int) (int, error) { return pairs(args[0], args[0], most), nil },
	"hasOnly":               priceOfPairs,
	"hasAny":                priceOfPairs,
	"hasAll":                priceOfPairs,
	"hasExactly":            priceOfPairs,
	"sets.contains":         priceOfPairs,
	"sets.intersects":       priceOfPairs,
	"sets.equivalent":       priceOfPairs,
	"@sortByAssociatedKeys": priceOfSort,
}

func priceOfReplace(args []ref.Val, _ int) (int, error) {
	text, _ := Text(args[0])
	old, _ := Text(args[1])
	count := utf8.RuneCountInString(text) + 1
	if old != "" {
		count = strings.Count(text, old)
	}
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			count = min(count, int(n))
		}
	}
	return len(text) + textSize(args[2]) + times(count, textSize(args[2])), nil
}

func priceOfSplit(args []ref.Val, _ int) (int, error) {
	text, _ := Text(args[0])
	separator, _ := Text(args[1])
	parts := utf8.RuneCountInString(text)
	if separator != "" {
		parts = strings.Count(text, separator)
	}
	if len(args) > 2 {
		if n, ok := args[2].(types.Int); ok && n >= 0 {
			parts = min(parts, int(n))
		}
	}
	return len(text) + times(parts+1, perValue), nil
}

func priceOfJoin(args []ref.Val, most int) (int, error) {
	price := sizeOf(args[0], most)
	if len(args) > 1 {
		price += times(elements(args[0]), textSize(args[1]))
	}
	return price, nil
}

// priceOfFormat assumes the longest output of each clause, and that every byte is escaped.
func priceOfFormat(args []ref.Val, most int) (int, error) {
	const largestNumber, largestEscape = 512, 10
	text, _ := Text(args[0])
	return len(text) + times(strings.Count(text, "%"), largestNumber) + times(sizeOf(args[1], most), largestEscape), nil
}

func priceOfSearch(args []ref.Val, _ int) (int, error) {
	return times(textSize(args[0])+1, max(textSize(args[1]), perValue)), nil
}

// priceOfEncoding assumes that every byte is escaped, and that lines are indented.
func priceOfEncoding(args []ref.Val, most int) (int, error) {
	const largestEscape, indent = 6, 4
	size := sizeOf(args[0], most)
	if size > most {
		return size, nil
	}
	return times(size, largestEscape+indent*depthOf(args[0], 0)), nil
}

// depthOf returns the maximum nesting depth of lists and maps. The caller has checked that the value's size is paid
// for.
func depthOf(v ref.Val, above int) int {
	depth := 0
	if above > deepest {
		return depth
	}
	switch v := v.(type) {
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			depth = max(depth, 1+depthOf(it.Next(), above+1))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			depth = max(depth, 1+depthOf(v.Get(it.Next()), above+1))
		}
	}
	return depth
}

func priceOfYAML(args []ref.Val, _ int) (int, error) {
	text, _ := Text(args[0])
	if strings.Contains(text, "&") && strings.Contains(text, "*") {
		return 0, errors.New("yaml.parse: the text may hold aliases, which can make it very large: remove & or *")
	}
	return times(len(text), perValue), nil
}

func priceOfSort(args []ref.Val, most int) (int, error) {
	return times(sizeOfAll(args, most), bits.Len(uint(elements(args[0])))+1), nil
}

// priceOfPairs returns the price of comparing each element of one list with each element of the other, in both
// directions.
func priceOfPairs(args []ref.Val, most int) (int, error) {
	return pairs(args[0], args[1], most) + pairs(args[1], args[0], most), nil
}

func pairs(a, b ref.Val, most int) int { return times(elements(a), sizeOf(b, most)) }
