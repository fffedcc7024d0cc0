package toolexec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// hasPlaces returns an error if a type lacks a field for one of the names. It checks by decoding. It also returns an
// error if two names differ only in case, because no argument text could have both. It does not check a type that
// decodes itself.
func hasPlaces(t reflect.Type, names []string) error {
	for i, name := range names {
		for _, other := range names[:i] {
			if strings.EqualFold(name, other) {
				return fmt.Errorf("members %q and %q differ only in case", other, name)
			}
		}
	}
	if strictjson.ReadsBy(t) != strictjson.ByKind {
		return nil
	}
	if err := strictjson.UnmarshalStrict("{}", reflect.New(t).Interface()); err != nil {
		return fmt.Errorf("type %s cannot be decoded: %w", t, err)
	}
	for _, name := range names {
		text, err := strictjson.Marshal(map[string]any{name: nil})
		if err != nil {
			return err
		}
		// The member's own type may refuse null. Only whether the member was found matters.
		err = strictjson.UnmarshalStrict(text, reflect.New(t).Interface())
		if errors.Is(err, strictjson.ErrUnknownMember) {
			return fmt.Errorf("type %s has no place for member %q", t, name)
		}
	}
	return nil
}
