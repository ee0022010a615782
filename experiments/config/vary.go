package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// varyFlag is what errors about variants name.
const varyFlag = "--vary"

// LoadVaried reads a configuration without axes and variants of it: each is what its settings
// make of it, and one without settings is the configuration itself. With search a rate is looked
// for, as LoadPlan has it. Settings are over what flags set.
func LoadVaried(path string, sets []string, variants [][]Setting, search bool) (*Sweep, error) {
	return loadSweep(path, sets, nil, search, &axis{values: variants})
}

// Only is the sweep of one of its variants.
func (s *Sweep) Only(variant int) *Sweep {
	one := *s
	one.Variants = s.Variants[variant : variant+1]
	return &one
}

// SettableKey returns the key of a configuration that word names: a whole key, or the end of
// one, as in max_requests.
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
		return "", fmt.Errorf("no such key to set%s", DidYouMean(word, known))
	}
	return "", fmt.Errorf("several keys end so: %s; name one of them", strings.Join(ends, ", "))
}

// Kind is what values a key has.
type Kind int

// Kinds of keys.
const (
	Text Kind = iota
	Number
	Integer
	Truth
)

// KindOf returns what values a settable key has, one at a time where it takes a list.
func KindOf(key string) Kind {
	v, known := new(Point).Field(key)
	switch {
	case key == "seed":
		return Integer
	case strings.HasPrefix(key, "card."):
		return Number
	case !known:
		return Text
	case v.Kind() == reflect.Bool:
		return Truth
	case v.CanInt() || v.CanUint():
		return Integer
	case v.CanFloat():
		return Number
	}
	return Text
}

// NewSetting is a setting as a flag has it: text is read as the key's type.
func NewSetting(key, text string) Setting { return Setting{Key: key, Value: flagText(text)} }
