package strictjson

import (
	"strconv"
	"strings"
)

// wholeNumber returns a JSON number without fraction and exponent: 1.20e2 is 120, -0.0 is 0. It is exact. It returns
// strconv.ErrSyntax if the number is not whole, and strconv.ErrRange if it has more digits than any Go integer.
func wholeNumber(text string) (string, error) {
	if !strings.ContainsAny(text, ".eE-") {
		return text, nil
	}
	digits, point, negative := splitDecimal(text)
	switch {
	case digits == "":
		return "0", nil
	case point < len(digits):
		return "", strconv.ErrSyntax
	case point > len("18446744073709551615"):
		return "", strconv.ErrRange
	}
	digits += strings.Repeat("0", point-len(digits))
	if negative {
		return "-" + digits, nil
	}
	return digits, nil
}

// ShortestNumber returns a JSON number in its shortest form without exponent: 1.10 is 1.1, 5.0 is 5, 4e3 is 4000. It
// returns strconv.ErrRange if this form has more than twenty zeros in a row at its end or behind the point.
func ShortestNumber(text string) (string, error) {
	const most = 20
	digits, point, negative := splitDecimal(text)
	switch {
	case digits == "":
		return "0", nil
	case point > len(digits)+most || point < -most:
		return "", strconv.ErrRange
	case point >= len(digits):
		digits += strings.Repeat("0", point-len(digits))
	case point <= 0:
		digits = "0." + strings.Repeat("0", -point) + digits
	default:
		digits = digits[:point] + "." + digits[point:]
	}
	if negative {
		digits = "-" + digits
	}
	return digits, nil
}

// splitDecimal splits a JSON number into 0.digits × 10^point. Digits neither begins nor ends with a zero, and is
// empty for zero.
func splitDecimal(text string) (digits string, point int, negative bool) {
	unsigned, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := unsigned, 0
	if at := strings.IndexAny(unsigned, "eE"); at >= 0 {
		mantissa = unsigned[:at]
		exponent = clampedInt(unsigned[at+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimRight(whole+fraction, "0")
	point = len(whole) + exponent
	leading := len(digits)
	digits = strings.TrimLeft(digits, "0")
	return digits, point - (leading - len(digits)), negative
}

// clampedInt parses an exponent, limited to a billion.
func clampedInt(text string) int {
	const most = 1_000_000_000
	n, err := strconv.Atoi(text)
	if err != nil && strings.HasPrefix(text, "-") {
		return -most
	}
	if err != nil {
		return most
	}
	return max(-most, min(n, most))
}
