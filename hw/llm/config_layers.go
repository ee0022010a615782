package llm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// addFeatures completes the features of a model that keys of its config.json have set.
func (c rawConfig) addFeatures(m *Model, kind *configType) error {
	if kind.has("latent") {
		m.KVHeads, m.HeadDim, m.QKVBias = 1, m.NopeDim+m.RopeDim, false
	}
	if kind.has("indexer") {
		m.IndexKeyBytes = m.IndexHeadDim + indexScale
		switch {
		case m.IndexEvery <= 1:
			m.IndexFirst, m.IndexEvery = 0, 0
		case m.IndexFirst == 0:
			m.IndexFirst = indexOffset
		}
		err := c.sameLayers("indexer_types", "shared", m.SharesIndex, fmt.Sprintf(
			"index_topk_freq = %d after %d layers", m.IndexEvery, m.IndexFirst))
		if err != nil {
			return err
		}
	}
	if kind.has("experts") {
		return c.sameLayers("mlp_layer_types", "sparse", m.RoutesLayer,
			fmt.Sprintf("first_k_dense_replace = %d", m.DenseLayers))
	}
	return nil
}

// indexOffset is the default of index_skip_topk_offset.
const indexOffset = 2

// indexScale is the bytes of an FP8 index key's float32 scale.
const indexScale = 4

// sameLayers returns an error unless a list names by a word exactly the layers for which is holds.
func (c rawConfig) sameLayers(key, word string, is func(layer int) bool, given string) error {
	kinds, err := c.list(key)
	if err != nil {
		return err
	}
	for layer, kind := range kinds {
		if is(layer) != (kind == word) {
			return fmt.Errorf("%s: layer %d is %q, which %s does not give", key, layer, kind, given)
		}
	}
	return nil
}

// list returns the texts of a list, or none.
func (c rawConfig) list(key string) (all []string, err error) {
	if !c.set(key) {
		return nil, nil
	}
	if err = json.Unmarshal(c[key], &all); err != nil {
		err = fmt.Errorf("%s: want a list of strings", key)
	}
	return all, err
}

// Kinds of layer_types.
const (
	fullLayer   = "full_attention"
	windowLayer = "sliding_attention"
)

// addWindow sets the layers that have the window, or removes it.
func (c rawConfig) addWindow(m *Model, kind *configType) error {
	window := m.WindowTokens
	m.Window = Window{}
	if window == 0 || !c.slides(kind) || m.Layers < 1 || m.Layers > mostLayers {
		return nil
	}
	pattern := kind.windows
	switch first := int(c.number("max_window_layers")); {
	case c.set("layer_types") && !kind.is("switched"):
		kinds, err := c.list("layer_types")
		if err != nil || len(kinds) != m.Layers {
			return fmt.Errorf("layer_types: want %d layers, got %d", m.Layers, len(kinds))
		}
		pattern = ""
		for _, k := range kinds {
			pattern += map[bool]string{true: "w", false: "f"}[k == windowLayer]
		}
	case kind.is("switched"):
		if first < 0 || first > m.Layers {
			return fmt.Errorf("max_window_layers: want 0 to %d, got %d", m.Layers, first)
		}
		pattern = strings.Repeat("f", first) + strings.Repeat("w", m.Layers-first)
	case c.set("sliding_window_pattern"):
		every := min(c.number("sliding_window_pattern"), float64(m.Layers))
		if every < 1 {
			return fmt.Errorf("sliding_window_pattern: want 1 or more, got %g", every)
		}
		pattern = strings.Repeat("w", int(every)-1) + "f"
	}
	if strings.Contains(pattern, "w") {
		m.Window = Window{WindowTokens: window, WindowPattern: period(pattern)}
	}
	return nil
}

// period returns the shortest prefix that, repeated, equals the pattern.
func period(pattern string) string {
	for n := 1; n < len(pattern); n++ {
		if strings.HasPrefix(strings.Repeat(pattern[:n], len(pattern)/n+1), pattern) {
			return pattern[:n]
		}
	}
	return pattern
}
