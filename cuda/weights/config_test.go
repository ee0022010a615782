package weights

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
)

func TestParseConfig(t *testing.T) {
	llama3 := Rope{Theta: 500000, Scaling: Llama3Scaling, Factor: 8, LowFactor: 1, HighFactor: 4,
		OriginalContext: 8192}
	const shape = `"model_type":"llama","num_hidden_layers":2,"hidden_size":12,"num_attention_heads":4,"intermediate_size":10,"vocab_size":17,"max_position_embeddings":128`
	base := plain(llm.Model{Layers: 2, Hidden: 12, QHeads: 4, KVHeads: 4, HeadDim: 4, FFN: 10,
		Vocab: 17})
	base.Eps, base.Rope = 1e-6, Rope{Theta: 10000}
	with := func(change func(*Config)) Config {
		c := base
		change(&c)
		return c
	}
	for _, c := range []struct {
		keys string
		want Config
	}{
		{``, base},
		{`,"rms_norm_eps":1e-5,"tie_word_embeddings":true`,
			with(func(c *Config) { c.Eps, c.TiedEmbeddings = 1e-5, true })},
		{`,"rms_norm_eps":0`, with(func(c *Config) { c.Eps = 0 })},
		{`,"rope_theta":500000.0,"rope_scaling":null`, with(func(c *Config) { c.Rope.Theta = 500000 })},
		{`,"rope_theta":500000.0,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}`,
			with(func(c *Config) { c.Rope = llama3 })},
		{`,"rope_parameters":{"rope_theta":500000.0,"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}`,
			with(func(c *Config) { c.Rope = llama3 })},
		{`,"rope_parameters":{"rope_theta":70000.0,"rope_type":"default"}`,
			with(func(c *Config) { c.Rope.Theta = 70000 })},
		{`,"rope_scaling":{"type":"linear","factor":2.5}`,
			with(func(c *Config) {
				c.Rope.Scaling, c.Rope.Factor, c.MaxContext = LinearScaling, 2.5, 320
			})},
		{`,"quantization_config":null,"hidden_act":"silu","partial_rotary_factor":1.0`, base},
	} {
		got, err := parseConfig("config.json", []byte(`{`+shape+`,"head_dim":4`+c.keys+`}`))
		if err != nil || bare(got) != c.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.keys, got, err, c.want)
		}
	}
	for _, c := range []struct {
		keys string
		want []string
	}{
		{`,"architectures":["Qwen2ForCausalLM"]`, []string{"architectures", "LlamaForCausalLM",
			"Qwen2ForCausalLM"}},
		{`,"model_type":"mistral"`, []string{"model_type", "mistral"}},
		{`,"quantization_config":{"bits":4}`, []string{"quantization_config"}},
		{`,"attention_bias":true`, []string{"attention_bias", "no bias"}},
		{`,"mlp_bias":true`, []string{"mlp_bias", "no bias"}},
		{`,"hidden_act":"gelu"`, []string{"hidden_act", "gelu"}},
		{`,"rope_scaling":{"rope_type":"yarn","factor":4}`,
			[]string{"rope_scaling", `"yarn"`, "linear or llama3"}},
		{`,"rope_scaling":{"type":"linear"}`, []string{"factor", "positive"}},
		{`,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4}`,
			[]string{"original_max_position_embeddings"}},
		{`,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4,"original_max_position_embeddings":8}`, []string{"high_freq_factor above"}},
		{`,"rope_theta":-1`, []string{"rope_theta"}},
		{`,"partial_rotary_factor":0.5`, []string{"partial_rotary_factor"}},
		{`,"rms_norm_eps":-1`, []string{"rms_norm_eps"}},
		{`,"num_key_value_heads":3`, []string{"num_key_value_heads", "divisor"}},
		{`,"head_dim":0`, []string{"head_dim", "pairs", "3"}},
		{`,"head_dim":0,"hidden_size":13`, []string{"hidden_size", "multiple", "13"}},
		{`,"num_hidden_layers":0`, []string{"num_hidden_layers", "got 0"}},
		{`,"vocab_size":99999999999`, []string{"vocab_size"}},
		{`,` + "\n" + `"num_key_value_heads":"many"`, []string{":2", "num_key_value_heads", "string"}},
		{`,` + "\n\n" + `}`, []string{":3"}},
	} {
		_, err := parseConfig("config.json", []byte(`{`+shape+`,"head_dim":4`+c.keys+`}`))
		wantError(t, c.keys, err, append(c.want, "config.json")...)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(tinyJSON))
	f.Add([]byte(`{"model_type":"llama","rope_parameters":{"rope_type":"llama3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig("config.json", data)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		for i, f := range c.Rope.InvFreq(c.HeadDim) {
			if !(f >= 0) {
				t.Fatalf("frequency %d of %+v is %g", i, c.Rope, f)
			}
		}
	})
}

func TestTensors(t *testing.T) {
	c := tiny()
	var names []string
	for _, tensor := range c.Tensors() {
		rows, columns := tensor.Shape(c)
		if !strings.HasPrefix(tensor.String(), "layers.1.") {
			names = append(names, fmt.Sprintf("%v[%d][%d]", tensor, rows, columns))
		}
	}
	const want = "embed[17][12] layers.0.attn_norm[1][12] layers.0.qkv[32][12] layers.0.o[12][16] " +
		"layers.0.mlp_norm[1][12] layers.0.gate_up[20][12] layers.0.down[12][10] norm[1][12] head[17][12]"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Llama-3-8B has 8.03 billion parameters.
	c = plain(llm.Model{Layers: 32, Hidden: 4096, QHeads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336,
		Vocab: 128256})
	if got := c.WeightBytes(); got != 2*8030261248 {
		t.Errorf("Llama-3-8B has %d bytes, want %d", got, int64(2*8030261248))
	}
	if got := c.WithDefaults(); got.Eps != 1e-5 || got.Rope.Theta != 500000 {
		t.Errorf("Llama 3's defaults: %+v", got)
	}
	c.Vocab = 32000
	if got := c.WithDefaults(); got.Rope.Theta != 10000 {
		t.Errorf("Llama 2's defaults: %+v", got)
	}
}
