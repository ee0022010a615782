package weights

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// saved is a tensor of a checkpoint under test.
type saved struct {
	dtype  string
	shape  []int
	values []float32
}

func (s saved) bytes() []byte {
	var out []byte
	for _, v := range s.values {
		switch s.dtype {
		case "F16":
			out = binary.LittleEndian.AppendUint16(out, uint16(cuda.HalfOf(float64(v))))
		case "BF16":
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(v)>>16))
		case "F32":
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		default:
			out = append(out, byte(v))
		}
	}
	return out
}

// writeTensors writes a safetensors file.
func writeTensors(t *testing.T, path string, tensors map[string]saved) {
	t.Helper()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		s, from := tensors[name], len(data)
		data = append(data, s.bytes()...)
		header[name] = map[string]any{"dtype": s.dtype, "shape": s.shape,
			"data_offsets": []int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, strings.Repeat(" ", -len(text)&7)...) // as the format's own writer pads
	write(t, path, raw(string(text), data))
}

// raw is a safetensors file of any header and data.
func raw(header string, data []byte) []byte {
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))),
		[]byte(header), data)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// plain is a shape whose weights and KV have 16 bits.
func plain(m llm.Model) Config {
	m.Name, m.MaxContext, m.WeightBytesEach, m.KVBytesEach = "plain", 128, 2, 2
	return Config{Model: m}
}

// bare is a config without what its file is called.
func bare(c Config) Config {
	c.Name, c.Source = "plain", ""
	return c
}

// tiny has head width apart from hidden, groups, and an odd vocabulary.
func tiny() Config {
	c := plain(llm.Model{Layers: 2, Hidden: 12, QHeads: 4, KVHeads: 2, HeadDim: 4, FFN: 10, Vocab: 17})
	c.Eps, c.Rope = 1e-5, Rope{Theta: 10000}
	return c
}

const tinyJSON = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 4,
"num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 10, "vocab_size": 17, "max_position_embeddings": 128, "rms_norm_eps": 1e-05,
"rope_theta": 10000.0, "rope_scaling": null, "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false, "torch_dtype": "float16"}`

// checkpoint returns the tensors of c under HuggingFace's names, with values that identify every
// tensor and place apart.
func checkpoint(c Config, dtype string) map[string]saved {
	out := map[string]saved{}
	add := func(name string, shape ...int) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(len(out)+1) + float32(i%64)/64 // 12 bits: exact in fp16 below 32
			if dtype == "BF16" {
				values[i] = float32(1+i%128) / 128 * float32(int(1)<<(len(out)%8)) // 8 bits
			}
		}
		out[name] = saved{dtype, shape, values}
	}
	add("model.embed_tokens.weight", c.Vocab, c.Hidden)
	for l := range c.Layers {
		at := func(name string) string { return fmt.Sprintf("model.layers.%d.%s.weight", l, name) }
		add(at("input_layernorm"), c.Hidden)
		add(at("self_attn.q_proj"), c.QHeads*c.HeadDim, c.Hidden)
		add(at("self_attn.k_proj"), c.KVHeads*c.HeadDim, c.Hidden)
		add(at("self_attn.v_proj"), c.KVHeads*c.HeadDim, c.Hidden)
		add(at("self_attn.o_proj"), c.Hidden, c.QHeads*c.HeadDim)
		add(at("post_attention_layernorm"), c.Hidden)
		add(at("mlp.gate_proj"), c.FFN, c.Hidden)
		add(at("mlp.up_proj"), c.FFN, c.Hidden)
		add(at("mlp.down_proj"), c.Hidden, c.FFN)
	}
	add("model.norm.weight", c.Hidden)
	if !c.TiedEmbeddings {
		add("lm_head.weight", c.Vocab, c.Hidden)
	}
	return out
}

// folderOf writes a whole checkpoint in one file.
func folderOf(t *testing.T, config string, tensors map[string]saved) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.json"), []byte(config))
	writeTensors(t, filepath.Join(dir, oneFile), tensors)
	return dir
}

// shardedFolder spreads it over three files.
func shardedFolder(t *testing.T, config string, tensors map[string]saved) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.json"), []byte(config))
	shards := [3]map[string]saved{{}, {}, {}}
	for i, name := range slices.Sorted(maps.Keys(tensors)) {
		shards[i%3][name] = tensors[name]
	}
	for i, shard := range shards {
		writeTensors(t, filepath.Join(dir, fmt.Sprintf("model-%05d-of-00003.safetensors", i+1)), shard)
	}
	return dir
}

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func wantError(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: want an error with %q", what, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q is not in: %v", what, part, err)
		}
	}
}
