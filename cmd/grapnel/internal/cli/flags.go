package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/near"
)

func textsOf[T ~string](values []T) []string {
	return lo.Map(values, func(v T, _ int) string { return string(v) })
}

// oneOf returns the value with a name.
func oneOf[T ~string](flag, what, text string, values []T) (T, error) {
	if v := T(text); lo.Contains(values, v) {
		return v, nil
	}
	meant, ok := near.Name(text, textsOf(values))
	return "", fmt.Errorf("%s: unknown %s %q%s", flag, what, text, lo.Ternary(ok, fmt.Sprintf(" (did you mean %q?)", meant), ""))
}

// labelOf parses NAME=VALUE.
func labelOf(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%s is %q: it must be NAME=VALUE", flag, text)
	}
	return name, value, nil
}

// labelsOf parses a list of NAME=VALUE.
func labelsOf(flag string, texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := map[string]string{}
	for _, text := range texts {
		name, value, err := labelOf(flag, text)
		if err != nil {
			return nil, err
		}
		if _, twice := labels[name]; twice {
			return nil, fmt.Errorf("%s: %q is given twice", flag, name)
		}
		labels[name] = value
	}
	return labels, nil
}

// instantOf parses a time: RFC 3339, or a duration from now. Direction is -1 for the past and 1 for the future.
func instantOf(flag, text string, now time.Time, direction int) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	age, err := durationOf(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %q: it must be a duration such as 12h or 7d, or a time such as %s", flag, text, now.UTC().Format(time.RFC3339))
	}
	if direction < 0 {
		age = -age
	}
	return now.Add(age), nil
}

// durationOf parses a duration that may be in days.
func durationOf(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	age, err := time.ParseDuration(text)
	if err == nil && age < 0 {
		err = errors.New("it is negative")
	}
	return age, err
}

// labelText returns labels in the order of their names.
func labelText(labels map[string]string) string {
	names := slices.Sorted(maps.Keys(labels))
	return strings.Join(lo.Map(names, func(name string, _ int) string { return name + "=" + labels[name] }), " ")
}
