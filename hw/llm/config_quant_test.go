package llm

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const llama8B = `"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
	"max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32,
	"num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
	"quantization_config": `

// The quantization_config of published checkpoints of Llama-3.1-8B, with the size of their files
// where it is known: in GB, embeddings in 16 bits.
func TestPublishedFormats(t *testing.T) {
	for _, c := range []struct {
		name, json string
		kind       string // of the GEMM
		gigabytes  float64
		kvBytes    int
	}{
		{"RedHatAI FP8-dynamic", `{"quant_method": "compressed-tensors", "format": "float-quantized",
			"ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"],
			"weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
			"input_activations": {"num_bits": 8, "type": "float", "dynamic": true}}}}`, "fp8", 9.08, 2},
		{"FP8 with FP8 KV", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8}}},
			"kv_cache_scheme": {"num_bits": 8, "type": "float"}}`, "fp8", 9.08, 1},
		{"FP8 in blocks", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"weights": {"num_bits": 8, "type": "float", "strategy": "block",
			"block_structure": [128, 128]}}}}`, "fp8_block", 9.08, 2},
		{"nvidia FP8", `{"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}`,
			"fp8", 9.08, 1},
		{"nvidia FP4", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
			"exclude_modules": ["lm_head"], "kv_cache_quant_algo": "FP8"}`, "nvfp4", 6.03, 1},
		{"RedHatAI NVFP4", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"weights": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
			"input_activations": {"num_bits": 4, "type": "float", "group_size": 16}}}}`, "nvfp4", 6.03, 2},
		{"MXFP4", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"weights": {"num_bits": 4, "type": "float", "group_size": 32}}}}`, "mxfp4", 5.81, 2},
		{"hugging-quants AWQ-INT4", `{"quant_method": "awq", "bits": 4, "group_size": 128,
			"zero_point": true, "version": "gemm", "modules_to_not_convert": null}`, "int4_wo", 5.73, 2},
		{"GPTQ of 4 bits", `{"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true}`,
			"int4_wo", 5.70, 2},
		{"GPTQ of 8 bits", `{"quant_method": "gptq", "bits": 8, "group_size": -1, "dynamic": {}}`,
			"int8_wo", 9.08, 2},
		{"RedHatAI w4a16", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"input_activations": null, "weights": {"num_bits": 4, "type": "int", "group_size": 128,
			"strategy": "group"}}}, "format": "pack-quantized"}`, "int4_wo", 5.70, 2},
		{"RedHatAI w8a8", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {
			"input_activations": {"num_bits": 8, "type": "int"}, "weights": {"num_bits": 8, "type": "int",
			"strategy": "channel"}}}, "format": "int-quantized"}`, "int8", 9.08, 2},
	} {
		m, err := ParseConfig("c.json", []byte("{"+llama8B+c.json+"}"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := float64(m.WeightBytes()) / 1e9
		if kind := m.LinearType(m.WeightBytesEach); kind != c.kind || m.KVBytesEach != c.kvBytes ||
			math.Abs(got/c.gigabytes-1) > 5e-3 || math.Abs(float64(m.Parameters())/8.03e9-1) > 5e-3 {
			t.Errorf("%s: %s, %.3f GB and KV of %d bytes, want %s, %.2f and %d", c.name, kind, got,
				m.KVBytesEach, c.kind, c.gigabytes, c.kvBytes)
		}
	}
}

// A format that is not modelled is one line with the line of the key.
func TestFormatsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"quant_method": "bitsandbytes", "load_in_4bit": true}`:        "quant_method = bitsandbytes",
		`{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}`: "quant_algo = MIXED_PRECISION",
		`{"quant_method": "gptq", "bits": 4,
			"dynamic": {"a": {"bits": 8}}}`: "a: layers in several",
		`{"quant_method": "auto-round", "bits": 4,
			"extra_config": {"mlp.0": {"bits": 8}, "lm_head": {"bits": 16}}}`: "mlp.0: layers in several",
		`{"quant_method": "compressed-tensors", "format": "dense"}`: "config_groups: missing",
		`{"config_groups": {"a": {"targets": ["re:.*mlp.*"],
			"weights": {"num_bits": 8, "type": "float"}}}}`: `config_groups.a.targets = ["re:.*mlp.*"]`,
		`{"quant_method": "gptq", "bits": 3}`: "weights of 3 bits",
		`{"config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}, "b": {"weights":
			{"num_bits": 4, "type": "float", "group_size": 16}}}}`: "config_groups: groups in several",
		`{"quant_method": "fbgemm_fp8",
			"modules_to_not_convert": ["layers.0.self_attn.q_proj"]}`: "attention in 16 bits",
		`{"config_groups": {"a": {"weights":
			{"num_bits": 2, "type": "int"}}}}`: "config_groups.a: weights of 2 bits (int)",
		`3`: "quantization_config: ",
	} {
		_, err := ParseConfig("c.json", []byte("{"+llama8B+text+"}"))
		if err == nil || !strings.HasPrefix(err.Error(), "c.json:4: quantization_config: ") ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Experts of a mixture may be narrow alone: attention of Kimi K2 and gpt-oss has 16 bits.
func TestExpertsAloneAreNarrow(t *testing.T) {
	const mixture = `{"model_type": "qwen3_moe", "head_dim": 128,
		"hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960,
		"moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128,
		"num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
		"vocab_size": 151936, "quantization_config": {"quant_method": "compressed-tensors",
		KEPT "config_groups": {"group_0": {TARGETS
		"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}}`
	for kept, targets := range map[string]string{
		`"ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"],`: "",
		`"exclude_modules": ["model.layers.0.self_attn*"],`:            `"targets": ["Linear"],`,
		"": `"targets": ["re:.*mlp.experts.*"],`,
	} {
		text := strings.NewReplacer("KEPT", kept, "TARGETS", targets).Replace(mixture)
		m, err := ParseConfig("c.json", []byte(text))
		if err != nil || m.WeightBytesEach != 2 || m.ExpertBytesEach != 0.5625 ||
			m.LinearType(m.ExpertBytes()) != "int4_wo" {
			t.Errorf("%s %s: %+v, %v", kept, targets, m, err)
		}
	}
}

// NVIDIA's checkpoints say how weights are stored in a file beside config.json. An error names it.
func TestQuantizationBesideConfigJSON(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", "{"+strings.TrimSuffix(strings.TrimSpace(llama8B),
		`, "torch_dtype": "bfloat16",
	"quantization_config":`)+"}")
	write("hf_quant_config.json", `{"producer": {"name": "modelopt"}, "quantization": {
		"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16,
		"exclude_modules": ["lm_head"]}}`)
	m, err := Load(dir)
	if err != nil || m.WeightType != "nvfp4" || m.KVBytesEach != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	write("hf_quant_config.json", `{"quantization": {"quant_algo": "W4A8_AWQ"}}`)
	_, err = Load(dir)
	wantError(t, "another format", err, "hf_quant_config.json:1: quantization: quant_algo = W4A8_AWQ "+
		"is not modelled")
}

// Text parts of multimodal models are read, and named.
func TestTextParts(t *testing.T) {
	const shape = `"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "intermediate_size": 9, "vocab_size": 9, "max_position_embeddings": 99`
	for text, note := range map[string]string{
		`{"model_type": "mistral3", "vision_config": {"a": 1}, "torch_dtype": "bfloat16",
			"text_config": {"model_type": "mistral", ` + shape + `}}`: "(text_config)",
		`{"model_type": "qwen2_5_omni", "thinker_config": {"audio_config": {"a": 1}, "text_config": {
			"model_type": "qwen2", ` + shape + `}}}`: "(thinker_config)",
		`{"model_type": "qwen2_vl", "vision_config": {"a": 1}, ` + shape + `}`: "outside vision_config",
		`{"model_type": "seed_oss", ` + shape + `}`:                            `model_type "seed_oss" is not known: taken for a dense`,
	} {
		m, err := ParseConfig("c.json", []byte(text))
		if err != nil || m.Layers != 2 || m.WeightBytesEach != 2 || !strings.Contains(m.Note, note) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}
