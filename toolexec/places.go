package toolexec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// hasPlaces checks by trying that the decoder can read into a type and has a place there for members of these names,
// and that no two of them differ only in case, for no argument text could have both. A type that reads itself is
// taken at its word.
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
		// A null may displease the member's own type; all that matters is whether the member was found.
		err = strictjson.UnmarshalStrict(text, reflect.New(t).Interface())
		if errors.Is(err, strictjson.ErrUnknownMember) {
			return fmt.Errorf("type %s has no place for member %q", t, name)
		}
	}
	return nil
}
