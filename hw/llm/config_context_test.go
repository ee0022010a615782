package llm

import (
	"fmt"
	"strings"
	"testing"
)

// The context is the max_model_len that vLLM derives without --max-model-len.
func TestContextOfConfigJSON(t *testing.T) {
	const yarn = `"factor": 4.0, "original_max_position_embeddings": 32768`
	for _, c := range []struct {
		name, kind, more string
		want             int
	}{
		{"no scaling", "llama", `"max_position_embeddings": 8192, "rope_scaling": null`, 8192},
		{"yarn", "llama", `"max_position_embeddings": 40960, "rope_scaling": {"rope_type": "yarn", ` +
			yarn + `}`,
			131072},
		{"yarn under its old key", "llama",
			`"max_position_embeddings": 40960, "rope_scaling": {"type": "yarn", ` + yarn + `}`, 131072},
		{"yarn with both keys", "llama",
			`"max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "rope_type": "yarn", ` +
				yarn + `}`,
			131072},
		{"yarn as Transformers 5 writes it", "llama",
			`"max_position_embeddings": 40960, "rope_parameters": {"rope_type": "yarn", ` +
				yarn + `}`, 131072},
		{"yarn over an extended context", "llama", `"max_position_embeddings": 163840, "rope_scaling": ` +
			`{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}`, 163840},
		{"yarn with the original context outside", "llama", `"max_position_embeddings": 131072, ` +
			`"original_max_position_embeddings": 4096, "rope_scaling": {"rope_type": "yarn", "factor": 8}`,
			32768},
		{"llama3 has the extended context", "llama",
			`"max_position_embeddings": 131072, "rope_scaling": ` +
				`{"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}`, 131072},
		{"dynamic", "llama",
			`"max_position_embeddings": 8192, "rope_scaling": {"type": "dynamic", "factor": 2.0}`, 16384},
		{"dynamic by alpha", "llama",
			`"max_position_embeddings": 8192, "rope_scaling": {"type": "dynamic", "alpha": 1000.0}`, 8192},
		{"linear, a fraction", "llama",
			`"max_position_embeddings": 2049, "rope_scaling": {"type": "linear", "factor": 2.5}`, 5122},
		{"longrope", "phi3", `"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, ` +
			`"rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}`, 4096},
		{"su is longrope", "phi3", `"max_position_embeddings": 131072, "rope_scaling": {"type": "su"}`,
			131072},
		{"default", "llama",
			`"max_position_embeddings": 9000, "rope_parameters": {"rope_type": "default"}`, 9000},
		{"no type, no factor", "llama", `"max_position_embeddings": 9000, "rope_parameters": {"rope_theta": 1e4}`, 9000},
		{"mrope is " +
			"default", "llama", `"max_position_embeddings": 9000, "rope_scaling": {"type": "mrope"}`, 9000},
		{"each kind of layer", "llama", `"max_position_embeddings": 9000, "rope_parameters": {"full_attention": ` +
			`{"rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_type": "default"}}`, 72000},
		{"Gemma 3 has the extended context", "gemma3_text", `"max_position_embeddings": 131072, "rope_scaling": ` +
			`{"rope_type": "linear", "factor": 8.0}`, 131072},
		{"the smallest of several", "llama", `"max_position_embeddings": 9000, "max_seq_length": 700`,
			700},
		{"model_max_length before all", "llama", `"max_position_embeddings": 8192, "model_max_length": 131072`, 131072},
	} {
		m, err := ParseConfig("c.json", []byte(configOf(c.kind, c.more)))
		if err != nil || m.MaxContext != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, m.MaxContext, err, c.want)
		}
		if says := m.Note != ""; says != (c.name == "longrope") {
			t.Errorf("%s: note %q", c.name, m.Note)
		}
	}
}

func configOf(kind, more string) string {
	return fmt.Sprintf(`{"model_type": %q, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, `+
		`"num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 9, "vocab_size": 90000, %s}`,
		kind, more)
}

// A scaling whose context is not known is refused by the field that does not say it.
func TestContextNotKnown(t *testing.T) {
	for scaling, want := range map[string]string{
		`{"type": "yarn", "factor": 4}`:                           "rope_scaling.original_max_pos",
		`{"type": "yarn", "original_max_position_embeddings": 9}`: "rope_scaling.factor: yarn needs",
		`{"type": "linear"}`: "rope_scaling.factor: linear " +
			"needs",
		`{"type": "linear", "factor": -1}`: "rope_scaling.factor: linear " +
			"needs",
		`{"factor": 8}`:                           "rope_scaling.rope_type: missing",
		`{"rope_type": "pose", "factor": 8}`:      `rope_scaling.rope_type = "pose": the context that it gives is not known; known: default`,
		`{"rope_type": "yarn", "type": "linear"}`: `rope_scaling: rope_type = "yarn" and type = "linear"; leave one out`,
		`{"full_attention": {"type": "new"}}`:     `rope_scaling.full_attention.rope_type = "new"`,
		`4`: "rope_scaling: want an " +
			"object, got 4",
		`{"rope_type": 4}`: "rope_scaling: want " +
			"rope_type, factor",
	} {
		_, err := ParseConfig("c.json", []byte(configOf("llama",
			`"max_position_embeddings": 9000, "rope_scaling": `+scaling)))
		if err == nil || !strings.HasPrefix(err.Error(), "c.json: "+want) {
			t.Errorf("%s: %v, want %s", scaling, err, want)
		}
	}
}

// A checkpoint of 32 bits is said to be served in 16, and a model that names no tokenizer has none.
func TestConfigJSONNotes(t *testing.T) {
	for key, note := range map[string]string{
		`"dtype": "float32"`:           `dtype = "float32": weights are served in two bytes each`,
		`"torch_dtype": "float32"`:     `torch_dtype = "float32": weights are served in two bytes each`,
		`"torch_dtype": "bfloat16"`:    "",
		`"torch_dtype": "torch.float"`: "refused",
	} {
		m, err := ParseConfig("c.json", []byte(configOf("llama",
			`"max_position_embeddings": 99, `+key)))
		if err != nil && note == "refused" {
			continue
		}
		if err != nil || m.WeightBytesEach != 2 || m.Tokenizer != "" || m.Counter() != "llama3" ||
			!strings.HasPrefix(m.Note, note) || (note == "") != (m.Note == "") {
			t.Errorf("%s: %+v, %v", key, m, err)
		}
	}
}
