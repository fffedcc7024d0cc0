package strictjson

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// doubleDigits is the number of significant digits that every double preserves. Longer numbers may be rounded.
const doubleDigits = 15

// IsDouble reports whether a double represents a decimal number as written: f, the double nearest to text, is equal
// to it, or its decimal form with up to 17 digits is. A whole number of 2^53 or more must be equal, because a double
// cannot represent all of its neighbours. The text is a JSON number with an exponent of at most four digits, or a CEL
// number.
func IsDouble(text string, f float64) bool {
	digits, _, _ := splitDecimal(text)
	large := math.Abs(f) >= 1<<53
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return false
	case f == 0:
		return digits == ""
	case len(digits) <= doubleDigits && !large:
		return true
	case large && math.Abs(f) < 1<<64 || len(digits) > len("18446744073709551615"):
		return isEqualDecimal(text, f)
	}
	for _, precision := range []int{-1, 17} {
		if isSameDecimal(text, strconv.FormatFloat(f, 'e', max(precision-1, -1), 64)) {
			return true
		}
	}
	return isEqualDecimal(text, f)
}

// isSameDecimal reports whether two numbers have the same value.
func isSameDecimal(a, b string) bool {
	digitsA, pointA, negativeA := splitDecimal(a)
	digitsB, pointB, negativeB := splitDecimal(b)
	return digitsA == digitsB && pointA == pointB && negativeA == negativeB
}

// isEqualDecimal reports whether a decimal number is exactly f.
func isEqualDecimal(text string, f float64) bool {
	const longest = 5 // length of an exponent with its sign
	if at := strings.IndexAny(text, "eE"); len(text) > MaxDigits || at >= 0 && len(text)-at-1 > longest {
		return false
	}
	exact, ok := new(big.Rat).SetString(text)
	return ok && exact.Cmp(new(big.Rat).SetFloat64(f)) == 0
}
