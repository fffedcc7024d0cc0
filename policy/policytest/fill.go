package policytest

import "reflect"

// fill replaces names by their values in all strings that into points to.
func fill(into any, in func(string) string) { fillIn(reflect.ValueOf(into).Elem(), in) }

func fillIn(v reflect.Value, in func(string) string) {
	if v.CanAddr() {
		switch p := v.Addr().Interface().(type) {
		case *wantedText:
			p.fill(in)
			return
		case *Value:
			*p = Value(in(string(*p)))
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(in(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fillIn(v.Elem(), in)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fillIn(v.Index(i), in)
		}
	case reflect.Map:
		filled := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			fillIn(value, in)
			filled.SetMapIndex(key, value)
		}
		if !v.IsNil() && v.CanSet() {
			v.Set(filled)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillIn(v.Field(i), in)
			}
		}
	}
}
