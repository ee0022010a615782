package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// config returns the model of a published config.json.
func config(t testing.TB, name string) *Model {
	t.Helper()
	for _, c := range published {
		if c.name == name {
			m, err := ParseConfig("config.json", []byte(c.json))
			if err != nil {
				t.Fatal(err)
			}
			return &m
		}
	}
	t.Fatalf("no config.json of %s", name)
	return nil
}

// Totals are as the model's makers publish them: DeepSeek-V3 (technical report, section 1), Mixtral
// (arXiv 2401.04088, section 2), Qwen3 (blog, 2025-04-29), GLM-4.5 and GLM-5 (README of zai-org),
// gpt-oss (model card, table 1), Kimi K2 (README). What counts as active differs in whether
// embeddings do.
func TestPublishedTotals(t *testing.T) {
	for _, c := range []struct {
		name                    string
		billions, active, error float64
	}{
		{"DeepSeek-V3", 671, 37, 0.02}, {"Mixtral-8x7B", 46.7, 12.9, 0.015},
		{"Qwen3-30B-A3B", 30.5, 3.3, 0.1}, {"Qwen3-235B-A22B", 235, 22, 0.02},
		{"GLM-4.5", 355, 32, 0.04}, {"GLM-5", 744, 40, 0.03}, {"gpt-oss-20b", 20.91, 3.61, 0.02},
		{"gpt-oss-120b", 116.83, 5.13, 0.02}, {"Kimi-K2", 1000, 32, 0.03},
	} {
		m := config(t, c.name)
		total, active := float64(m.Parameters())/1e9, float64(m.ActiveWeights())/1e9
		if off := total/c.billions - 1; off > 0.03 || off < -0.03 {
			t.Errorf("%s: %.4g billion parameters, published %g", c.name, total, c.billions)
		}
		if off := active/c.active - 1; off > c.error || off < -c.error {
			t.Errorf("%s: %.4g billion active, published %g", c.name, active, c.active)
		}
	}
}

// Rows of a latent have the sizes of FlashMLA's caches, in 16 bits and in FP8, whatever the blocks;
// one head has a selection, and its metadata are the indexer's keys.
func TestGeometryOfLatents(t *testing.T) {
	v3, v32 := config(t, "DeepSeek-V3"), config(t, "DeepSeek-V3.2")
	for _, tokens := range []int{1, 16, 64} {
		g := v3.Geometry(tokens)
		if g.KVHeads != 1 || g.BlockBytes != int64(tokens)*576*2 || g.MetaBytes != 0 ||
			g.TokenBytes() != 70272 {
			t.Errorf("DeepSeek-V3, blocks of %d tokens: %+v", tokens, g)
		}
		g = v32.Geometry(tokens)
		if g.KVHeads != 1 || g.BlockBytes != int64(tokens)*576*2 || g.MetaBytes != int64(tokens)*132 {
			t.Errorf("DeepSeek-V3.2, blocks of %d tokens: %+v", tokens, g)
		}
		fp8 := *v32
		fp8.KVBytesEach = 1
		if g = fp8.Geometry(tokens); g.BlockBytes != int64(tokens)*656 {
			t.Errorf("DeepSeek-V3.2 in FP8, blocks of %d tokens: %+v", tokens, g)
		}
	}
	m := config(t, "GLM-5.2")
	for layer := range m.Layers { // as its config.json lists them
		if full := layer < 3 || (layer-2)%4 == 0; m.SharesIndex(layer) == full {
			t.Errorf("GLM-5.2: layer %d shares its selection: %v", layer, !full)
		}
	}
	if m.Indexers() != 21 {
		t.Errorf("GLM-5.2: %d indexers, want 21", m.Indexers())
	}
}

// The KV of a context is that of its tokens in layers without a window, and of the newest ones in
// layers with one.
func TestKVOfWindows(t *testing.T) {
	m := config(t, "gpt-oss-120b")
	if m.WindowLayers() != 18 || !m.HasWindow(0) || m.HasWindow(1) || m.WindowPattern != "wf" {
		t.Errorf("gpt-oss-120b: %+v, %d layers", m.Window, m.WindowLayers())
	}
	for _, c := range []struct {
		tokens int
		rows   int64
	}{{100, 100 * 36}, {128, 128 * 36}, {4096, 4096*18 + 128*18}} {
		if got := m.KVBytes(c.tokens); got != c.rows*2048 {
			t.Errorf("%d tokens: %d bytes, want %d", c.tokens, got, c.rows*2048)
		}
	}
	if got := config(t, "gemma-3-1b").WindowLayers(); got != 22 {
		t.Errorf("gemma-3-1b: %d of 26 layers have a window, want 22", got)
	}
	if p := config(t, "Qwen2-7B with a window").WindowPattern; p !=
		strings.Repeat("f", 14)+strings.Repeat("w", 14) {
		t.Errorf("Qwen2-7B with a window: %s", p)
	}
	for text, want := range map[string]string{"wfwf": "wf", "wwwwwfwww": "wwwwwf", "w": "w",
		"fww": "fww", "fwwfw": "fww"} {
		if got := period(text); got != want {
			t.Errorf("period of %s: %s, want %s", text, got, want)
		}
	}
}

// The number of distinct experts is between one token's and all, and more with more tokens.
func TestDistinctExperts(t *testing.T) {
	m := config(t, "DeepSeek-V3")
	r := m.Router()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10000).Draw(t, "tokens")
		got := r.Distinct(float64(n))
		if got < 8-1e-9 || got > min(256, float64(8*n))+1e-9 || r.Distinct(float64(n+1)) < got {
			t.Fatalf("%d tokens: %g experts", n, got)
		}
	})
	if got := r.Distinct(1); got < 8-1e-9 || got > 8+1e-9 {
		t.Errorf("one token: %g experts, want 8", got)
	}
}

// What contradicts itself names its key and line.
func TestClassErrors(t *testing.T) {
	const plain = "name = \"x\"\nlayers = 4\nhidden = 64\nq_heads = 4\nkv_heads = 1\nhead_dim = 24\n" +
		"ffn = 9\nvocab = 9\nmax_context = 99\ntokenizer = \"llama3\"\nweight_bytes_each = 2\n" +
		"kv_bytes_each = 2\n"
	const latent = "kv_lora_rank = 512\nqk_nope_dim = 16\nqk_rope_dim = 8\nv_head_dim = 16\n"
	const index = "q_lora_rank = 64\nindex_heads = 2\nindex_head_dim = 128\nindex_key_bytes = 132\n" +
		"index_top_k = 64\n"
	for more, want := range map[string]string{
		latent: "", latent + index: "", latent + index + "index_first = 1\nindex_every = 2\n": "",
		"experts = 8\nexperts_per_token = 2\nexpert_ffn = 16\nshared_experts = 1\n": "",
		"window = 8\nwindow_pattern = \"wf\"\n":                                     "",
		"mtp_layers = 1\n":                                                          "",

		"qk_rope_dim = 8\n": `:13: qk_rope_dim: means something with kv_lora_rank only`,
		"kv_lora_rank = 512\nqk_nope_dim = 16\nqk_rope_dim = 8\n": `v_head_dim: must be at least 1 and at most 16384, got 0`,
		strings.Replace(latent, "16", "20", 1):                    `:6: head_dim: want qk_nope_dim + qk_rope_dim = 28`,
		"index_heads = 4\n":                                       `:13: index_heads: means something with index_top_k`,
		index:                                                     `q_lora_rank: means something with kv_lora_rank`,
		latent + "index_top_k = 4\n":                              `index_heads: must be at least 1 and at most 4096, got 0`,
		latent + index + "index_every = 2\n":                      `index_first: want 1 or more`,
		"experts = 8\n":                                           `experts_per_token: must be at least 1 and at most experts = 8, got 0`,
		"experts_per_token = 2\n":                                 `:13: experts_per_token: means something with experts`,
		"expert_bytes_each = 0.5\n":                               `:13: expert_bytes_each: means something with experts only`,
		"experts = 8\nexperts_per_token = 9\nexpert_ffn = 16\n":   `:14: experts_per_token: must be at least 1 and at most experts = 8, got 9`,
		"window = 8\n":                                            `window_pattern: want a letter w`,
		"window = 8\nwindow_pattern = \"ff\"\n":                   `:14: window_pattern: want a letter w`,
		"window = 8\nwindow_pattern = \"wx\"\n":                   `:14: window_pattern: want a letter w`,
		"window_pattern = \"w\"\n":                                `:13: window_pattern: means something with window`,
		"mtp_layers = 5\n":                                        `:13: mtp_layers: must be at least 0 and at most layers = 4, got 5`,
		latent + "window = 8\nwindow_pattern = \"w\"\n":           `window: want 0 with kv_lora_rank`,
		"kv_lora = 5\n":                                           `kv_lora: unknown key, did you mean "kv_lora_rank"`,
	} {
		path := filepath.Join(t.TempDir(), "m.toml")
		if err := os.WriteFile(path, []byte(plain+more), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := Load(path)
		if want == "" {
			if err != nil || m.Plain() != strings.HasPrefix(more, "mtp") {
				t.Errorf("%q: %v, plain %v", more, err, m.Plain())
			}
			continue
		}
		wantError(t, more, err, "m.toml", want)
	}
}

// Shards of models with latents and experts hold all of them, and of what is copied one each.
func TestShardsOfClasses(t *testing.T) {
	for _, name := range []string{"DeepSeek-V3", "GLM-5.2", "Mixtral-8x7B", "gpt-oss-120b"} {
		m := config(t, name)
		for n := 2; n <= 8; n *= 2 {
			s, err := m.Shard(n)
			if err != nil {
				t.Fatal(err)
			}
			copied := int64(m.Indexers())*m.IndexerLinears() + 2*int64(m.Hidden*m.Layers+m.Hidden) +
				int64(m.Layers-m.OwnFFNs())*int64(m.Hidden*m.Experts)
			if m.IsLatent() {
				copied += int64(m.Layers) * WeightsOf(m.AttentionMatrices()[:1])
			}
			all, whole := int64(n)*s.Parameters(), m.Parameters()
			if extra := all - whole; extra < int64(n-1)*(copied-2*int64(m.Hidden)) ||
				float64(extra) > 1.01*float64(int64(n-1)*copied)+float64(whole)/1000 {
				t.Errorf("%s on %d GPUs: %d weights more than whole, %d copied", name, n, extra,
					int64(n-1)*copied)
			}
			if m.IsLatent() && s.KVBytesPerToken() != m.KVBytesPerToken() {
				t.Errorf("%s on %d GPUs: %d bytes of KV, want %d on each", name, n, s.KVBytesPerToken(),
					m.KVBytesPerToken())
			}
		}
	}
}
