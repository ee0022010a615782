package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/kv"
)

func TestModels(t *testing.T) {
	for _, c := range []struct {
		name                                                 string
		layers, hidden, qHeads, kvHeads, headDim, ffn, vocab int
		context                                              int
		kvBytes                                              int64
		billions                                             float64 // parameters, as published
	}{
		{"lwm-7b", 32, 4096, 32, 32, 128, 11008, 32000, 1 << 20, 524288, 6.74},
		{"codellama-34b", 48, 8192, 64, 8, 128, 22016, 32000, 16384, 196608, 33.74},
		{"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 524288, 6.74},
		{"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 262144, 131072, 8.03},
		{"llama3-8b-1m", 32, 4096, 32, 8, 128, 14336, 128256, 1 << 20, 131072, 8.03},
		{"llama3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 131072, 8.03},
		{"glm4-9b-1m", 40, 4096, 32, 4, 128, 13696, 151552, 1 << 20, 81920, 9.48},
		{"yi-9b-200k", 48, 4096, 32, 4, 128, 11008, 64000, 200000, 98304, 8.83},
		{"qwen2-7b", 28, 3584, 28, 4, 128, 18944, 152064, 131072, 57344, 7.62},
		{"qwen3-14b", 40, 5120, 40, 8, 128, 17408, 151936, 40960, 163840, 14.77},
		{"phi3-mini-128k", 32, 3072, 32, 32, 96, 8192, 32064, 131072, 393216, 3.82},
	} {
		m := mustModel(t, c.name)
		got := []int{m.Layers, m.Hidden, m.QHeads, m.KVHeads, m.HeadDim, m.FFN, m.Vocab, m.MaxContext}
		want := []int{c.layers, c.hidden, c.qHeads, c.kvHeads, c.headDim, c.ffn, c.vocab, c.context}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: want %v, got %v", c.name, want, got)
				break
			}
		}
		if m.Name != c.name {
			t.Errorf("%s calls itself %s", c.name, m.Name)
		}
		if n := m.KVBytesPerToken(); n != c.kvBytes {
			t.Errorf("%s: want %d KV bytes a token, got %d", c.name, c.kvBytes, n)
		}
		if n := m.Geometry(32).TokenBytes(); n != c.kvBytes {
			t.Errorf("%s: geometry has %d bytes a token, want %d", c.name, n, c.kvBytes)
		}
		if n := float64(m.WeightBytes()) / 2e9; n < c.billions*0.998 || n > c.billions*1.002 {
			t.Errorf("%s: want %.2f billion parameters, got %.3f", c.name, c.billions, n)
		}
	}
}

func TestGeometryOfBlock(t *testing.T) {
	want := kv.Geometry{Layers: 32, KVHeads: 32, BlockTokens: 32, BlockBytes: 16 << 10, MetaBytes: 512}
	if got := mustModel(t, "lwm-7b").Geometry(32); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
}

func TestLoadConfigJSON(t *testing.T) {
	for _, c := range []struct {
		name, json string
		same       string // built-in model with the same shape
	}{
		{"llama", `{"_name_or_path": "org/llama3.1-8b", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
			"intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "quantization_config": null}`, "llama3.1-8b"},
		{"mha without num_key_value_heads", `{"_name_or_path": "lwm-7b", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
			"intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 1048576}`, "lwm-7b"},
		{"glm", `{"_name_or_path": "THUDM/glm4-9b-1m", "num_layers": 40, "hidden_size": 4096, "num_attention_heads": 32, "multi_query_attention": true, "multi_query_group_num": 4,
			"kv_channels": 128, "ffn_hidden_size": 13696, "padded_vocab_size": 151552, "seq_length": 1048576, "add_qkv_bias": true}`, "glm4-9b-1m"},
		{"qwen2", `{"_name_or_path": "qwen2-7b", "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
			"intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 131072}`,
			"qwen2-7b"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "config.json")
		if err := os.WriteFile(path, []byte(c.json), 0o644); err != nil {
			t.Fatal(err)
		}
		want := mustModel(t, c.same)
		for _, p := range []string{path, dir} {
			got, err := Load(p)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			want.Source, want.Tokenizer, want.TopP = got.Source, "", 0
			if got.Counter() != mustModel(t, c.same).Counter() || got != *want {
				t.Errorf("%s: want %+v, got %+v", c.name, *want, got)
			}
		}
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"a.json", "{\"num_hidden_layers\": 32,\n\"hidden_size\": }", []string{"a.json:2"}},
		{"b.json", "{\n\"num_hidden_layers\": \"many\"}",
			[]string{"b.json:2", "num_hidden_layers", "string"}},
		{"c.json", `{"hidden_size": 4096, "num_attention_heads": 32}`,
			[]string{"c.json: has no num_hidden_layers or num_layers; add it, or save the config.json"}},
		{"zero.json", `{"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 0}`,
			[]string{"zero.json", "num_attention_heads", "at least 1", "got 0"}},
		{"d.json", `{"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 3, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 9, "vocab_size": 9, "max_position_embeddings": 9}`,
			[]string{"d.json", "num_key_value_heads", "divisor of num_attention_heads = 3"}},
		{"e.json", `{"num_local_experts": 8}`,
			[]string{"e.json: not modelled: num_local_experts = 8; modelled are"}},
		{"f.json", `{"quantization_config": {"bits": 4}}`,
			[]string{"f.json:1: quantization_config: quant_method = missing"}},
		{"g.json", `{"torch_dtype": "int8"}`, []string{"g.json", "torch_dtype", "int8"}},
		{"h.toml", "name = \"x\"\nlayers = 4\nhiden = 64\n",
			[]string{"h.toml:3", "hiden: unknown key", `did you mean "hidden"`}},
		{"i.toml", "name = \"x\"\nlayers = -4\n", []string{"i.toml:2", "layers", "-4"}},
		{"j.toml", "name = \"x\"\nlayers = \"four\"\n", []string{"j.toml:2", "layers"}},
	} {
		path := filepath.Join(dir, c.file)
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		wantError(t, c.file, err, c.want...)
	}
	_, err := Load("lwm-7")
	wantError(t, "misspelt", err, `unknown model "lwm-7"`, `did you mean "lwm-7b"`,
		"sparseserve list models")
	_, err = Load("no/such/config.json")
	wantError(t, "missing", err, "no/such/config.json")
}

func wantError(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: want an error with %q", name, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: want %q in: %v", name, p, err)
		}
	}
}

func FuzzParseConfigJSON(f *testing.F) {
	f.Add([]byte(`{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 9, "vocab_size": 9, "max_position_embeddings": 9}`))
	f.Add([]byte(`{"num_hidden_layers": 1e99}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseConfig("config.json", data)
		if err != nil {
			return
		}
		if m.WeightBytes() <= 0 || m.KVBytesPerToken() <= 0 || m.Geometry(32).BlockBytes <= 0 {
			t.Fatalf("accepted %+v", m)
		}
	})
}

func mustModel(t testing.TB, name string) *Model {
	t.Helper()
	m, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// top_p of generation_config.json beside a config.json.
func TestGenerationTopP(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]float64{`{"do_sample": true, "top_p": 0.8}`: 0.8, `{}`: 0} {
		file := filepath.Join(dir, "generation_config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := generationTopP(dir); got != want || err != nil {
			t.Errorf("%s: top_p %g, want %g (%v)", text, got, want, err)
		}
	}
}
