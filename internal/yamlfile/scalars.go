package yamlfile

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"
)

// Types for numbers, times and regular expressions in files. They parse themselves from a file or a flag; the error
// of Set says what is expected. The zero value means that the file does not set the value.
type (
	// Count is a whole number above zero.
	Count int
	// Limit is a whole number above zero, or -1 for no limit.
	Limit int
	// Duration is a time above zero, such as 90s or 10m.
	Duration time.Duration
	// Bytes is a size above zero, such as 4096, 64KiB or 2MiB.
	Bytes int64
	// Regexp is a Go regular expression.
	Regexp struct{ *regexp.Regexp }
)

// Set parses a count.
func (c *Count) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return errors.New("expected a whole number above zero, such as 20")
	}
	*c = Count(n)
	return nil
}

func (c *Count) String() string { return lo.Ternary(*c == 0, "", strconv.Itoa(int(*c))) }

// Type returns the name of the value's type for help texts.
func (*Count) Type() string { return "number" }

// Set parses a limit.
func (c *Limit) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 && n != -1 {
		return errors.New("expected a whole number above zero or -1, such as 20")
	}
	*c = Limit(n)
	return nil
}

func (c *Limit) String() string { return lo.Ternary(*c == 0, "", strconv.Itoa(int(*c))) }

// Type returns the name of the value's type for help texts.
func (*Limit) Type() string { return "number" }

// Set parses a duration.
func (v *Duration) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("expected a time with its unit, such as 90s or 10m")
	}
	*v = Duration(d)
	return nil
}

func (v *Duration) String() string { return lo.Ternary(*v == 0, "", time.Duration(*v).String()) }

// Type returns the name of the value's type for help texts.
func (*Duration) Type() string { return "time" }

var units = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// Set parses a size.
func (v *Bytes) Set(text string) error {
	digits := strings.TrimRight(text, "BKMGi ")
	unit, known := units[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !known || err != nil || n < 1 || n > math.MaxInt64/unit {
		return errors.New("expected a size above zero, such as 4096, 64KiB or 2MiB")
	}
	*v = Bytes(n * unit)
	return nil
}

// Set parses a regular expression.
func (v *Regexp) Set(text string) error {
	expression, err := regexp.Compile(text)
	if err != nil || text == "" {
		return fmt.Errorf("expected a regular expression: %w", lo.CoalesceOrEmpty(err, errors.New("it is empty")))
	}
	v.Regexp = expression
	return nil
}
