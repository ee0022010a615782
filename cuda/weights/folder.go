package weights

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Folder is a HuggingFace folder: config.json and safetensors in F16, BF16 or F32.
type Folder struct {
	config Config
	files  []*os.File
	parts  map[Tensor][]stored // of each tensor, in the order of its rows
}

// Open reads config.json and the headers, and checks that every tensor is there in the right shape
// and type. The error names the file and the tensor. No weight is read yet.
func Open(folder string) (*Folder, error) {
	path := filepath.Join(folder, "config.json")
	data, err := files.ReadText(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	config, err := parseConfig(path, data)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	f := &Folder{config: config, parts: map[Tensor][]stored{}}
	files, tensors, err := openShards(folder)
	f.files = files
	if err == nil {
		err = f.place(folder, tensors)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("weights: %w", err), f.Close())
	}
	return f, nil
}

// Config returns the shape of config.json.
func (f *Folder) Config() Config { return f.config }

// Close closes the files.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.files {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// Read reads a tensor straight into dst. BF16 and F32 become fp16; a value that is not finite, or
// not finite in fp16, is an error.
func (f *Folder) Read(t Tensor, dst []cuda.Half) error {
	if err := fits(f.config, t, dst); err != nil {
		return err
	}
	if t.Kind == Head && f.config.TiedEmbeddings {
		t.Kind = Embed
	}
	if !t.inLayer() {
		t.Layer = 0
	}
	for i := range f.parts[t] {
		part := &f.parts[t][i]
		n := (part.end - part.begin) / elementBytes[part.dtype]
		if err := part.read(dst[:n]); err != nil {
			return fmt.Errorf("weights: %s: tensor %s: %w", part.path(), part.name, err)
		}
		dst = dst[n:]
	}
	return nil
}

// part is a tensor of the checkpoint that forms rows of one of our tensors.
type part struct {
	name string
	rows int
}

// partsOf returns the checkpoint's tensors that are concatenated in t.
func partsOf(c Config, t Tensor) []part {
	layer := func(name string) string {
		return fmt.Sprintf("model.layers.%d.%s.weight", t.Layer, name)
	}
	q, kv := c.QHeads*c.HeadDim, c.KVHeads*c.HeadDim
	switch t.Kind {
	case Embed:
		return []part{{"model.embed_tokens.weight", c.Vocab}}
	case AttnNorm:
		return []part{{layer("input_layernorm"), 1}}
	case QKV:
		return []part{{layer("self_attn.q_proj"), q}, {layer("self_attn.k_proj"), kv},
			{layer("self_attn.v_proj"), kv}}
	case O:
		return []part{{layer("self_attn.o_proj"), c.Hidden}}
	case MLPNorm:
		return []part{{layer("post_attention_layernorm"), 1}}
	case GateUp:
		return []part{{layer("mlp.gate_proj"), c.FFN}, {layer("mlp.up_proj"), c.FFN}}
	case Down:
		return []part{{layer("mlp.down_proj"), c.Hidden}}
	case Norm:
		return []part{{"model.norm.weight", 1}}
	}
	return []part{{"lm_head.weight", c.Vocab}}
}

// place finds each tensor's parts, and returns an error for tensors that a Llama does not have: an
// omitted weight would silently change the model.
func (f *Folder) place(folder string, tensors map[string]stored) error {
	used := map[string]bool{}
	for _, t := range f.config.Tensors() {
		for _, p := range partsOf(f.config, t) {
			s, ok := tensors[p.name]
			if !ok {
				return fmt.Errorf("%s: tensor %s is missing%s", folder, p.name, hint(f.config, t,
					tensors))
			}
			if err := s.suits(f.config, t, p); err != nil {
				return err
			}
			used[p.name] = true
			f.parts[t] = append(f.parts[t], s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if used[name] || strings.HasSuffix(name, ".rotary_emb.inv_freq") || f.config.TiedEmbeddings &&
			name == "lm_head.weight" {
			// old checkpoints store the frequencies that config.json gives, and some a tied head
			continue
		}
		s := tensors[name]
		if strings.HasSuffix(name, ".bias") {
			return fmt.Errorf("%s: tensor %s: Llama's linears have no bias; this is another "+
				"architecture", s.path(), name)
		}
		return fmt.Errorf("%s: tensor %s: a Llama of this config.json (%d layers) has no such "+
			"weight; is it another architecture, or are the weights quantised?",
			s.path(), name, f.config.Layers)
	}
	return nil
}

// suits checks type and shape of one part.
func (s *stored) suits(c Config, t Tensor, p part) error {
	if _, ok := elementBytes[s.dtype]; !ok {
		return fmt.Errorf("%s: tensor %s: want F16, BF16 or F32, got %s: quantised weights are "+
			"not supported; use the original checkpoint", s.path(), p.name, s.dtype)
	}
	_, columns := t.Shape(c)
	want := []int64{int64(p.rows), int64(columns)}
	if t.isNorm() {
		want = want[1:]
	}
	if !slices.Equal(s.shape, want) {
		return fmt.Errorf("%s: tensor %s: config.json makes it %v, the file has %v", s.path(),
			p.name, want, s.shape)
	}
	return nil
}

// hint returns the likely meaning of a missing tensor.
func hint(c Config, t Tensor, tensors map[string]stored) string {
	if t.Kind == Head {
		return "; if the head shares the embedding, config.json needs tie_word_embeddings = true"
	}
	for name := range tensors {
		if strings.HasSuffix(name, ".qweight") || strings.HasSuffix(name, ".qkv_proj.weight") {
			return fmt.Sprintf(", but there is %s: quantised or fused weights are not supported; "+
				"use the original checkpoint", name)
		}
	}
	return fmt.Sprintf("; are all shards downloaded? The checkpoint must have all of the %d layers "+
		"in config.json, under the names of LlamaForCausalLM", c.Layers)
}
