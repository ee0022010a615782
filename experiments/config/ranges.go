package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// bound is one clause of a field's range tag, such as ">= 1".
type bound struct {
	relation string
	limit    float64
}

// relations maps the relations of a range tag to words.
var relations = map[string]string{">=": "at least", ">": "above", "<=": "at most", "<": "below"}

// boundsOf parses a range tag: clauses separated by commas. An empty tag has no bounds.
func boundsOf(tag string) (all []bound) {
	for clause := range strings.SplitSeq(tag, ", ") {
		relation, number, _ := strings.Cut(clause, " ")
		limit, err := strconv.ParseFloat(number, 64)
		if tag != "" && (relations[relation] == "" || err != nil) {
			panic("config: range of a field: " + tag)
		} else if tag != "" {
			all = append(all, bound{relation, limit})
		}
	}
	return all
}

func (b bound) holds(x float64) bool {
	switch b.relation {
	case ">=":
		return x >= b.limit
	case ">":
		return x > b.limit
	case "<=":
		return x <= b.limit
	}
	return x < b.limit
}

// checkRanges returns the first number of the struct that v points to that is outside the range
// of its tag or not finite, or nil.
func checkRanges(v any, table string) *KeyError {
	for _, f := range FieldsOf(v) {
		if !f.Value.CanInt() && !f.Value.CanFloat() {
			continue
		}
		x := f.Value.Convert(reflect.TypeFor[float64]()).Float()
		bounds := boundsOf(f.Tag.Get("range"))
		if !math.IsNaN(x) && !math.IsInf(x, 0) &&
			!slices.ContainsFunc(bounds, func(b bound) bool { return !b.holds(x) }) {
			continue
		}
		bad := KeyError{Key: wholeKey(table, f.Key), Value: Show(f.Value.Interface())}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			bad.Reason = "must be a finite number"
			return &bad
		}
		var words []string
		for _, b := range bounds {
			words = append(words, fmt.Sprintf("%s %g", relations[b.relation], b.limit))
		}
		bad.Reason = "must be " + strings.Join(words, " and ")
		return &bad
	}
	return nil
}
