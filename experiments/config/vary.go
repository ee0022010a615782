package config

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
)

// varyFlag is the flag that errors about variants name.
const varyFlag = "--vary"

// LoadVaried reads a configuration without axes, and one variant per list of settings; an empty
// list gives the configuration itself. With search it searches for a rate, as in LoadPlan. Settings
// override flags.
func LoadVaried(path string, sets []string, variants [][]Setting, search bool) (*Sweep, error) {
	return loadSweep(context.Background(), path, sets, search, &axis{values: variants})
}

// SettableKey returns the key that word names: a whole key, or the end of a key, as in
// max_requests.
func SettableKey(word string) (string, error) {
	known := SettableKeys()
	if slices.Contains(known, word) {
		return word, nil
	}
	var ends []string
	for _, key := range known {
		if strings.HasSuffix(key, "."+word) {
			ends = append(ends, key)
		}
	}
	switch len(ends) {
	case 1:
		return ends[0], nil
	case 0:
		for _, old := range []string{word, "system." + word} {
			if now := renamed[old]; now != "" {
				return "", fmt.Errorf("is %s now", now)
			}
		}
		return "", fmt.Errorf("no such key to set%s", nearest.Meant(word, known))
	}
	return "", fmt.Errorf("several keys end so: %s; name one of them", strings.Join(ends, ", "))
}

// KindOf returns the kind of a settable key's values: reflect.Int and reflect.Float64 of all
// integers and numbers. If the key takes a list, it is an element's.
func KindOf(key string) reflect.Kind {
	v, known := new(Point).Field(key)
	switch {
	case known && (v.CanInt() || v.CanUint()):
		return reflect.Int
	case strings.HasPrefix(key, "card.") || known && v.CanFloat():
		return reflect.Float64
	}
	return reflect.String
}
