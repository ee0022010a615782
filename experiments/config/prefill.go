package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// PrefillAttentions lists the values of prefill.attention.
func PrefillAttentions() []string {
	names := []string{sim.PrefillDense, sim.PrefillMInference}
	for _, kind := range pattern.Kinds() {
		names = append(names, string(kind))
	}
	return names
}

// PrefillMix returns the prefill attention patterns of the heads of a model, or of a GPU's shard of
// it, under a system; nil is dense.
func PrefillMix(model *llm.Model, s *sim.Spec) (*pattern.Mix, error) {
	whole := *model
	whole.QHeads *= max(1, model.Ranks)
	mix, err := prefillMix(&whole, s)
	return mix.Split(model.Ranks), err
}

func prefillMix(model *llm.Model, s *sim.Spec) (*pattern.Mix, error) {
	if head, ok := s.PrefillHead(); ok {
		return pattern.Uniform(head, model.QHeads)
	}
	if !s.SparsePrefill() {
		return nil, nil
	}
	path, ok := PatternFile(s)
	if !ok {
		return pattern.Named(s.Prefill.Pattern, model.QHeads)
	}
	table, err := ReadPatterns(path)
	if err != nil {
		return nil, err
	}
	return table.Mix(path, model.Layers, model.QHeads)
}

// PatternFile returns the file of patterns that a system reads, if it reads one.
func PatternFile(s *sim.Spec) (path string, ok bool) {
	ok = s.Prefill.Attention == sim.PrefillMInference &&
		!slices.Contains(pattern.NamedMixes(), s.Prefill.Pattern)
	return s.Prefill.Pattern, ok
}

// ReadPatterns reads a file of patterns.
func ReadPatterns(path string) (pattern.Table, error) {
	text, err := files.ReadText(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no such mix or file: %s; mixes are %s", path,
			strings.Join(pattern.NamedMixes(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return pattern.Parse(path, text)
}
