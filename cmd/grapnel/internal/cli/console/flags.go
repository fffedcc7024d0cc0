package console

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

// TextsOf returns values as texts.
func TextsOf[T ~string](values []T) []string {
	return lo.Map(values, func(v T, _ int) string { return string(v) })
}

// OneOf returns the value with a name.
func OneOf[T ~string](flag, what, text string, values []T) (T, error) {
	if v := T(text); lo.Contains(values, v) {
		return v, nil
	}
	meant, ok := near.Name(text, TextsOf(values))
	return "", fmt.Errorf("%s: unknown %s %q%s", flag, what, text, lo.Ternary(ok, fmt.Sprintf(" (did you mean %q?)", meant), ""))
}

// LabelOf parses NAME=VALUE.
func LabelOf(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%s is %q: it must be NAME=VALUE", flag, text)
	}
	return name, value, nil
}

// LabelsOf parses a list of NAME=VALUE.
func LabelsOf(flag string, texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := map[string]string{}
	for _, text := range texts {
		name, value, err := LabelOf(flag, text)
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

// InstantOf parses a time: RFC 3339, or a duration from now. Direction is -1 for the past and 1 for the future.
func InstantOf(flag, text string, now time.Time, direction int) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	age, err := DurationOf(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %q: it must be a duration such as 12h or 7d, or a time such as %s", flag, text, now.UTC().Format(time.RFC3339))
	}
	if direction < 0 {
		age = -age
	}
	return now.Add(age), nil
}

// DurationOf parses a duration that may be in days.
func DurationOf(text string) (time.Duration, error) {
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

// LabelText returns labels in the order of their names.
func LabelText(labels map[string]string) string {
	names := slices.Sorted(maps.Keys(labels))
	return strings.Join(lo.Map(names, func(name string, _ int) string { return name + "=" + labels[name] }), " ")
}
