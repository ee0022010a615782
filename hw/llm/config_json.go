package llm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// ParseConfig reads a Hugging Face config.json. It returns an error for a model whose
// arithmetic Model does not represent. As with vLLM's "auto", weights and KV are served in 16 bits
// for 16- and 32-bit checkpoints; quantization_config says how narrower ones are served.
func ParseConfig(file string, data []byte) (Model, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var raw rawConfig
	if err := files.ParseJSON(file, data, &raw); err != nil {
		return Model{}, err
	}
	if raw == nil {
		return Model{}, fmt.Errorf("%s:1: want an object, got null", file)
	}
	raw, part := raw.decoder()
	if err := raw.refuse(file); err != nil {
		return Model{}, err
	}
	kind, _ := raw.kind()
	for _, key := range kind.needs {
		if !raw.set(key) {
			return Model{}, fmt.Errorf("%s: %s: missing, and model_type %q says nothing of it", file, key,
				raw.text("model_type"))
		}
	}
	context, note, err := raw.context()
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	tied := string(bytes.TrimSpace(raw["tie_word_embeddings"]))
	m := Model{
		Name:            configName(file, raw.text("_name_or_path")),
		MaxContext:      int(min(context, 1<<31)),
		TiedEmbeddings:  tied == "true" || kind.is("tied") && tied != "false",
		QKVBias:         kind.is("bias"),
		WeightBytesEach: 2,
		KVBytesEach:     2,
		Source:          file,
	}
	if err := raw.fill(&m, kind); err != nil {
		return Model{}, fmt.Errorf("%s:%d: %w", file, lineOf(data, err.Path), err)
	}
	if !raw.set("num_key_value_heads") && !raw.set("multi_query_attention") || m.KVHeads == 0 {
		m.KVHeads = m.QHeads
	}
	if m.HeadDim == 0 && m.QHeads > 0 {
		m.HeadDim = m.Hidden / m.QHeads
	}
	m.Note = strings.Join(slices.DeleteFunc([]string{part, raw.likeLlama(), note, raw.narrowed()},
		func(s string) bool { return s == "" }), "; ")
	if err := raw.addFeatures(&m, kind); err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	at, err := raw.addQuantFile(file)
	if err != nil {
		return Model{}, err
	}
	if err := raw.quantize(&m); err != nil {
		return Model{}, fmt.Errorf("%s: %w", cmp.Or(at,
			fmt.Sprintf("%s:%d: quantization_config", file, lineOf(data, "quantization_config"))), err)
	}
	if err := raw.addWindow(&m, kind); err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	err = m.Validate()
	if at := new(tomlfile.KeyError); errors.As(err, &at) {
		if err := raw.lacks(at.Path, kind); err != nil {
			return Model{}, fmt.Errorf("%s: %w", file, err)
		}
		key := func(field string) string { return cmp.Or(raw.keyOf(field), field) }
		text := fieldValue.ReplaceAllStringFunc(at.Err.Error(), func(of string) string {
			return key(strings.TrimSuffix(of, " =")) + " ="
		})
		return Model{}, fmt.Errorf("%s: %w", file, tomlfile.Wrong(key(at.Path), "%s", text))
	}
	return m, nil
}

// fieldValue matches a field of Model that an error gives the value of.
var fieldValue = regexp.MustCompile(`\w+ =`)

// configName names a model after its checkpoint, or else after its file; a config.json is named
// after its folder.
func configName(file, checkpoint string) string {
	if checkpoint != "" {
		return filepath.Base(checkpoint)
	}
	if base := filepath.Base(file); base != "config.json" {
		return strings.TrimSuffix(base, ".json")
	}
	if abs, err := filepath.Abs(file); err == nil {
		return filepath.Join(filepath.Base(filepath.Dir(abs)), "config.json")
	}
	return "config"
}
