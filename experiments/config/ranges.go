package config

import (
	"math"
	"reflect"

	"github.com/sparseserve/sparseserve/internal/units"
)

// checkRanges returns the first number of the struct that v points to that is outside the range
// of its tag or not finite, or nil.
func checkRanges(v any, table string) *KeyError {
	for _, f := range FieldsOf(v) {
		if !f.Value.CanInt() && !f.Value.CanFloat() {
			continue
		}
		x := f.Value.Convert(reflect.TypeFor[float64]()).Float()
		why := units.Outside(units.Bounds(f.Tag.Get("range")), x)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			why = "must be a finite number"
		}
		if why != "" {
			return &KeyError{Key: wholeKey(table, f.Key), Value: Show(f.Value.Interface()), Reason: why}
		}
	}
	return nil
}
