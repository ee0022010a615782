package llm

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed config_keys.csv
var configKeysCSV string

//go:embed config_types.csv
var configTypesCSV string

// configKey is a row of config_keys.csv.
type configKey struct{ key, field, feature, harmless string }

var configKeys = sync.OnceValue(func() (all []configKey) {
	for _, row := range rowsOf("config_keys.csv", configKeysCSV)[1:] {
		all = append(all, configKey{row[0], row[1], row[2], row[3]})
	}
	return all
})

// configType is a row of config_types.csv: what a model_type determines.
type configType struct {
	needs, always, features []string
	windows                 string
}

var configTypes = sync.OnceValue(func() map[string]*configType {
	all := map[string]*configType{}
	for _, row := range rowsOf("config_types.csv", configTypesCSV)[1:] {
		all[row[0]] = &configType{strings.Fields(row[1]), strings.Fields(row[2]), strings.Fields(row[3]),
			row[4]}
	}
	return all
})

// kind returns the type of a config.json, and reports whether it is known. An unknown type has no
// features.
func (c rawConfig) kind() (kind *configType, known bool) {
	if kind = configTypes()[c.modelType()]; kind == nil {
		return &configType{}, false
	}
	return kind, true
}

// has reports whether the type has a feature; every type has the empty one.
func (k *configType) has(feature string) bool {
	return feature == "" || slices.Contains(k.features, feature)
}

func (k *configType) is(always string) bool { return slices.Contains(k.always, always) }

// fill sets the fields of m that config_keys.csv names and that are not set yet. Its error names
// the key.
func (c rawConfig) fill(m *Model, kind *configType) *tomlfile.KeyError {
	for _, k := range configKeys() {
		if k.field == "" || !c.set(k.key) || !kind.has(k.feature) {
			continue
		}
		f := tomlfile.Field(m, k.field)
		if !f.IsZero() {
			continue
		}
		if err := json.Unmarshal(c[k.key], f.Addr().Interface()); err != nil {
			return &tomlfile.KeyError{Path: k.key, Err: errors.New(files.JSONWords(err))}
		}
	}
	return nil
}

// keyOf returns the key that gave a field of Model its value, or its usual key, or "".
func (c rawConfig) keyOf(field string) (usual string) {
	for _, k := range configKeys() {
		if k.field == field && c.set(k.key) {
			return k.key
		}
		if k.field == field && usual == "" {
			usual = k.key
		}
	}
	return usual
}

// lacks returns an error if the config.json has none of the keys that give a field of Model its
// value.
func (c rawConfig) lacks(field string, kind *configType) error {
	var keys []string
	for _, k := range configKeys() {
		switch {
		case k.field != field || !kind.has(k.feature):
		case c[k.key] != nil && string(bytes.TrimSpace(c[k.key])) != "null":
			return nil
		default:
			keys = append(keys, k.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return fmt.Errorf("has no %s; add it, or save the config.json of the model's own checkpoint, "+
		"because files of a wrapper or an adapter lack it", strings.Join(keys, " or "))
}

// refused returns a key with its value if it changes computation or KV in a way that Model does not
// represent; else "".
func (c rawConfig) refused(key string, kind *configType) string {
	fits := func(k configKey) bool { ok, _ := path.Match(k.key, key); return ok }
	i := slices.IndexFunc(configKeys(), fits)
	value := string(bytes.TrimSpace(c[key]))
	switch {
	case key == "is_causal" && value == "false":
		return "is_causal = false"
	case i < 0 || !c.set(key) || kind.has(configKeys()[i].feature):
		return ""
	case key == "layer_types":
		if kinds := c.otherLayers(key, kind.windows != ""); len(kinds) > 0 {
			return key + " (" + strings.Join(kinds, ", ") + ")"
		}
		return ""
	case key == "sliding_window" && !c.slides(kind),
		key == "attn_type_list" && !strings.Contains(value, "0"), // 0: linear attention
		c.number(key) == c.numberOf(configKeys()[i].harmless):
		return ""
	case value[0] == '{' || value[0] == '[' || len(value) > 40:
		return key
	}
	return key + " = " + value
}

// numberOf returns a number, or the number of a key; NaN if there is neither.
func (c rawConfig) numberOf(text string) float64 {
	switch text {
	case "head_dim":
		return c.headDim()
	case "last layer":
		return c.number("num_hidden_layers") - 1
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	if n := c.number(text); n != 0 {
		return n
	}
	return math.NaN()
}
