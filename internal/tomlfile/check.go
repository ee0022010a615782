package tomlfile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/internal/units"
)

// Check returns an error for the first field that breaks its tags, of the struct that v points to
// or of a row in it:
//
//   - want: description of a text that must not be empty
//   - values: the allowed texts
//   - range: the bounds of a number (units.Bounds); a limit may be a key of the same struct
//   - with: a key of the same struct without which the field means nothing; other tags hold only
//     with it
//   - rising: the key of each row, or "." for a list of numbers, with numbers above 0 that rise,
//     among the rows with the same value of the key that the tag each names; there is at least one
//     row unless the key is optional
//   - unique: keys whose values together stand in one row only
func Check(v any) error { return check(reflect.ValueOf(v).Elem(), "") }

func check(v reflect.Value, path string) error {
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			if err := check(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			at, x := Join(path, Key(f)), v.FieldByIndex(f.Index)
			if err := checkField(v, x, f.Tag); err != nil {
				var row *KeyError
				if errors.As(err, &row) {
					at, err = at+row.Path, row.Err
				}
				return &KeyError{at, err}
			}
			if err := check(x, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldsOf lists the fields of a struct that check looks at.
func fieldsOf(t reflect.Type) []reflect.StructField {
	known, ok := fields.Load(t)
	if !ok {
		known = slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			of := f.Type
			if of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			tagged := slices.ContainsFunc([]string{"want", "values", "range", "with", "rising", "unique"},
				func(key string) bool { return f.Tag.Get(key) != "" })
			return f.Anonymous || !tagged && (of.Kind() != reflect.Struct || len(fieldsOf(of)) == 0)
		})
		fields.Store(t, known)
	}
	return known.([]reflect.StructField)
}

var fields sync.Map // reflect.Type -> []reflect.StructField

// checkField checks the field x of the struct v.
func checkField(v, x reflect.Value, tag reflect.StructTag) error {
	if with := tag.Get("with"); with != "" && field(v, with).IsZero() {
		if x.IsZero() {
			return nil
		}
		return fmt.Errorf("means something with %s only, got %v", with, x)
	}
	optional := strings.Contains(tag.Get("toml"), "omitempty") && x.IsZero()
	if want := tag.Get("want"); want != "" && x.IsZero() {
		return fmt.Errorf("want %s", want)
	}
	values := strings.Fields(tag.Get("values"))
	if len(values) > 0 && !optional && !slices.Contains(values, x.String()) {
		return fmt.Errorf("want one of %s, got %q", strings.Join(values, ", "), x)
	}
	if key := tag.Get("rising"); key != "" && !optional {
		return checkRising(x, key, tag.Get("each"))
	}
	if keys := strings.Fields(tag.Get("unique")); len(keys) > 0 {
		return checkUnique(x, keys)
	}
	bounds := units.Bounds(tag.Get("range"))
	if bounds == nil {
		return nil
	}
	for i := range bounds {
		if key := bounds[i].Key; key != "" {
			bounds[i].Limit = number(field(v, key))
		}
	}
	if why := units.Outside(bounds, number(x)); why != "" {
		return fmt.Errorf("%s, got %v", why, x)
	}
	return nil
}

func checkRising(rows reflect.Value, key, each string) error {
	if rows.Len() == 0 {
		return errors.New("want at least one row")
	}
	last := map[string]float64{}
	for i := range rows.Len() {
		of := ""
		if each != "" {
			of = field(rows.Index(i), each).String()
		}
		at, x := fmt.Sprintf("[%d]", i), rows.Index(i)
		if key != "." {
			at, x = at+"."+key, field(x, key)
		}
		if n := number(x); !(n > last[of]) || math.IsInf(n, 0) {
			return Wrong(at, "want numbers above 0 that rise, got %v after %v", x, last[of])
		}
		last[of] = number(x)
	}
	return nil
}

func checkUnique(rows reflect.Value, keys []string) error {
	seen := map[string]bool{}
	for i := range rows.Len() {
		var of []string
		for _, key := range keys {
			of = append(of, fmt.Sprint(field(rows.Index(i), key)))
		}
		row := strings.Join(of, ", ")
		if seen[row] {
			return Wrong(fmt.Sprintf("[%d].%s", i, keys[0]), "a second row of %s", row)
		}
		seen[row] = true
	}
	return nil
}

func number(v reflect.Value) float64 { return v.Convert(reflect.TypeFor[float64]()).Float() }
