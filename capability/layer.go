package capability

import (
	"slices"

	"github.com/samber/lo"
)

// Place says on which side of the hooks a layer is.
type Place uint8

// The places.
const (
	// Inside is inside the hooks: the hooks decide first, and see the layer's changes. Use it for retries, time limits
	// and everything that does the work.
	Inside Place = iota
	// Outside is outside the hooks: the layer sees values only after the hooks have changed them. Use it for spans,
	// journals and everything that stores or shows values.
	Outside
)

// layer is a named wrapper with its Place.
type layer[T any] struct {
	name  string
	place Place
	value T
}

// layers are the wrappers around one part of an agent, in the order in which they were given.
type layers[T any] []layer[T]

func (l layers[T]) with(place Place, name string, value T) layers[T] {
	return append(slices.Clip(l), layer[T]{name, place, value})
}

func (l layers[T]) without(name string) layers[T] {
	return lo.Filter(l, func(x layer[T], _ int) bool { return x.name != name })
}

// replace returns the layers with another value in each layer that has the name.
func (l layers[T]) replace(name string, value T) layers[T] {
	return lo.Map(l, func(x layer[T], _ int) layer[T] {
		if x.name == name {
			x.value = value
		}
		return x
	})
}

func (l layers[T]) at(place Place) layers[T] {
	return lo.Filter(l, func(x layer[T], _ int) bool { return x.place == place })
}

// values returns the wrappers, outermost first, for a plan without hooks.
func (l layers[T]) values() []T {
	ordered := slices.Concat(l.at(Outside), l.at(Inside))
	return lo.Map(ordered, func(x layer[T], _ int) T { return x.value })
}

// around returns the wrappers, outermost first, with the hooks between outside and inside layers.
func (l layers[T]) around(hooks T) []T {
	return slices.Concat(l.at(Outside).values(), []T{hooks}, l.at(Inside).values())
}

func (l layers[T]) namesAt(place Place) []string {
	return lo.Map(l.at(place), func(x layer[T], _ int) string { return x.name })
}
