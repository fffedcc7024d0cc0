package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// editObject returns a JSON object with the values at dotted paths set and others removed. Other values keep their text,
// so that numbers keep their digits. Missing objects on the path to a value are created; missing elements of lists are
// an error.
func editObject(object string, set map[string]json.RawMessage, remove []string) (json.RawMessage, error) {
	raw := json.RawMessage(object)
	var err error
	for path, value := range set {
		if raw, err = put(raw, strings.Split(path, "."), value); err != nil {
			return nil, fmt.Errorf("set: %s: %w", path, err)
		}
	}
	for _, path := range remove {
		if raw, err = put(raw, strings.Split(path, "."), nil); err != nil {
			return nil, fmt.Errorf("remove: %s: %w", path, err)
		}
	}
	return raw, nil
}

// put returns raw with the value at path replaced. A nil value removes the old one.
func put(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		return putInList(raw, path, value)
	}
	members := map[string]json.RawMessage{}
	if raw != nil {
		if err := strictjson.Unmarshal(raw, &members); err != nil {
			return nil, fmt.Errorf("%q: the value that holds it is not an object", path[0])
		}
	}
	if members == nil { // raw was null
		members = map[string]json.RawMessage{}
	}
	inner, there := members[path[0]]
	if !there && value == nil {
		return raw, nil
	}
	after, err := put(inner, path[1:], value)
	if err != nil {
		return nil, err
	}
	if members[path[0]] = after; after == nil {
		delete(members, path[0])
	}
	return json.Marshal(members)
}

func putInList(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	var items []json.RawMessage
	if err := strictjson.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 || i >= len(items) {
		if value == nil {
			return raw, nil
		}
		return nil, fmt.Errorf("unknown element %q in a list of %d", path[0], len(items))
	}
	after, err := put(items[i], path[1:], value)
	if err != nil {
		return nil, err
	}
	if items[i] = after; after == nil {
		items = slices.Delete(items, i, i+1)
	}
	return json.Marshal(items)
}
