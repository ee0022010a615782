package builtin

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
)

// digitRuns matches the runs of digits of a name, product its first letters and digits. They
// separate products with similar names: b200 and h200, qwen3-8b and qwen2-7b.
var (
	digitRuns = regexp.MustCompile(`[0-9]+`)
	product   = regexp.MustCompile(`^[a-z]*-?[0-9]*`)
)

// otherProduct reports whether a name similar to a known one denotes another product.
func otherProduct(kind, name, known string) bool {
	name = strings.ToLower(name)
	return !slices.Equal(digitRuns.FindAllString(name, -1), digitRuns.FindAllString(known, -1)) ||
		kind == "gpu" && product.FindString(name) != product.FindString(known)
}

// cutsNumber reports whether name is a prefix of known that ends within a number, as h20 of h200.
func cutsNumber(name, known string) bool {
	const digits = "0123456789"
	return len(known) > len(name) && strings.ContainsRune(digits, rune(known[len(name)])) &&
		strings.ContainsRune(digits, rune(known[len(name)-1]))
}

// sameProduct returns, quoted, the known cards whose product is a word of name: h100-pcie for
// NVIDIA H100 NVL.
func sameProduct(name string, known []string) (same []string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool {
		return strings.ContainsRune(" -_/", r)
	}) {
		for _, k := range known {
			if of := product.FindString(k); digitRuns.MatchString(of) && product.FindString(word) == of {
				same = append(same, strconv.Quote(k))
			}
		}
	}
	return same
}

// Unknown returns an error that suggests the known names that begin with name, or else the nearest
// name. all lists the known names if that is not in full, own the other way to name one.
func Unknown(kind, name string, known []string, all, own string) error {
	if strings.HasPrefix(name, "[") || strings.Contains(name, ",") {
		return fmt.Errorf("want one %s; simulate and plan run each of a list, as in %s = [\"a\", \"b\"]",
			kind, kind)
	}
	all = "; known: " + cmp.Or(all, strings.Join(known, ", ")) + "; or " + own
	var near []string
	for _, k := range known {
		if name != "" && strings.HasPrefix(k, strings.ToLower(name)) && !cutsNumber(name, k) {
			near = append(near, strconv.Quote(k))
		}
	}
	if k := nearest.Name(name, known); len(near) == 0 && k != "" && !otherProduct(kind, name, k) {
		near = []string{strconv.Quote(k)}
	}
	if len(near) == 0 && kind == "gpu" {
		near = sameProduct(name, known)
	}
	if len(near) > 0 {
		return fmt.Errorf("unknown %s %q, did you mean %s?%s", kind, name, strings.Join(near, " or "),
			strings.TrimPrefix(all, ";"))
	}
	return fmt.Errorf("unknown %s %q%s", kind, name, all)
}

// notSized matches what people write differently in a name, and the parts of an id that change no
// size.
var notSized = regexp.MustCompile(`\bmeta-|-(instruct|hf|it|base|chat)\b|[-_ ]`)

// Fold returns a name without what people write differently in it.
func Fold(name string) string { return notSized.ReplaceAllString(strings.ToLower(name), "") }

// Alike returns the known name that differs from name only in spelling, or name.
func Alike(name string, known []string) string {
	if i := slices.IndexFunc(known, func(k string) bool { return Fold(k) == Fold(name) }); i >= 0 {
		return known[i]
	}
	return name
}
