package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Bound is one clause of the range of a number, such as ">= 1" or "<= layers".
type Bound struct {
	Relation string // a key of relations
	Limit    float64
	Key      string // whose value is the limit; empty: Limit
}

// relations maps the relations of a range to words.
var relations = map[string]string{">=": "at least", ">": "above", "<=": "at most", "<": "below"}

// Bounds parses a range: clauses separated by commas. An empty range has none. It panics for any
// other text, because ranges are tags of fields.
func Bounds(text string) (all []Bound) {
	if text == "" {
		return nil
	}
	for clause := range strings.SplitSeq(text, ", ") {
		relation, limit, _ := strings.Cut(clause, " ")
		b := Bound{Relation: relation}
		var err error
		if b.Limit, err = strconv.ParseFloat(limit, 64); err != nil {
			b.Key = limit
		}
		if relations[relation] == "" || limit == "" {
			panic("units: range of a number: " + text)
		}
		all = append(all, b)
	}
	return all
}

// Holds reports whether a number is within the bound.
func (b Bound) Holds(x float64) bool {
	switch b.Relation {
	case ">=":
		return x >= b.Limit
	case ">":
		return x > b.Limit
	case "<=":
		return x <= b.Limit
	}
	return x < b.Limit
}

// Outside returns the bounds in words, such as "must be at least 1 and at most 8", if a number is
// outside of any of them; else "".
func Outside(bounds []Bound, x float64) string {
	var words []string
	outside := false
	for _, b := range bounds {
		limit := fmt.Sprintf("%g", b.Limit)
		if b.Key != "" {
			limit = b.Key + " = " + limit
		}
		words = append(words, relations[b.Relation]+" "+limit)
		outside = outside || !b.Holds(x)
	}
	if !outside {
		return ""
	}
	return "must be " + strings.Join(words, " and ")
}
