package llm

import (
	"strings"
	"testing"
)

// published are the keys about arithmetic of the config.json files of checkpoints, and two
// variations. Modelled ones have a size to compare.
var published = []struct {
	name, json string
	want       string // of the error, up to what is modelled; empty: accepted
	billions   float64
	kvBytes    int64
}{
	{"Meta-Llama-3-8B", `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
		"max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
		"rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256}`, "", 8.03, 131072},
	{"Llama-3.2-1B", `{"hidden_act": "silu", "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false,
		"model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "rope_scaling": {"factor": 32.0, "rope_type": "llama3"},
		"tie_word_embeddings": true, "dtype": "bfloat16", "vocab_size": 128256}`, "", 1.236, 32768},
	{"Qwen2-7B", `{"attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
		"model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 131072, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 152064}`, "", 7.62, 57344},
	{"Qwen2-7B with a window", `{"hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 14,
		"model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 32768, "use_sliding_window": true,
		"vocab_size": 152064}`, "", 7.62, 57344},
	{"Qwen2-7B with a window for no layer", `{"hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
		"model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 32768, "use_sliding_window": true,
		"vocab_size": 152064}`, "", 7.62, 57344},
	{"Qwen3-4B", `{"attention_bias": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 9728, "max_position_embeddings": 40960,
		"max_window_layers": 36, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "sliding_window": null,
		"layer_types": ["full_attention", "full_attention"], "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 151936}`, "", 4.02, 147456},
	{"Qwen3-30B-A3B", `{"attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
		"max_position_embeddings": 40960, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
		"num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "sliding_window": null, "vocab_size": 151936}`,
		"", 30.53, 98304},
	{"Mistral-7B-v0.1", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000}`,
		"", 7.24, 131072},
	{"Mistral-7B-v0.3", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32768}`, "", 7.25, 131072},
	{"Mistral-Nemo", `{"head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 14336, "max_position_embeddings": 131072, "model_type": "mistral",
		"num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": null, "torch_dtype": "bfloat16", "vocab_size": 131072}`, "", 12.25, 163840},
	{"Mixtral-8x7B", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
		"num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false, "sliding_window": null, "vocab_size": 32000}`,
		"", 46.70, 131072},
	{"DeepSeek-V2-Lite", `{"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840,
		"model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
		"num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 102400}`,
		"", 15.71, 31104},
	{"DeepSeek-V3", `{"attention_bias": false, "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
		"max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
		"num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
		"qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}, "tie_word_embeddings": false,
		"topk_group": 4, "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 129280}`,
		"", 671.03, 70272},
	{"DeepSeek-V3.2", `{"first_k_dense_replace": 3, "hidden_size": 7168, "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432, "kv_lora_rank": 512,
		"max_position_embeddings": 163840, "model_type": "deepseek_v32", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
		"num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
		"quantization_config": {"quant_method": "fp8"}, "v_head_dim": 128, "vocab_size": 129280}`,
		"", 671.88, 78324},
	{"DeepSeek-V3 of other layers", `{"hidden_size": 7168, "index_topk_pattern": "FSSS", "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v32", "moe_layer_freq": 2,
		"n_routed_experts": 256, "num_attention_heads": 128, "num_hidden_layers": 61, "vocab_size": 129280}`,
		`not modelled: index_topk_pattern = "FSSS", moe_layer_freq = 2`, 0, 0},
	{"Kimi-K2", `{"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2",
		"moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
		"num_key_value_heads": 64, "num_nextn_predict_layers": 0, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {"quant_method": "fp8"},
		"tie_word_embeddings": false, "torch_dtype": "bfloat16",
		"v_head_dim": 128, "vocab_size": 163840}`,
		"", 1026.4, 70272},
	{"GLM-4.5", `{"attention_bias": true, "first_k_dense_replace": 3, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288, "max_position_embeddings": 131072,
		"model_type": "glm4_moe", "moe_intermediate_size": 1536, "n_group": 1, "n_routed_experts": 160, "n_shared_experts": 1, "num_attention_heads": 96, "num_experts_per_tok": 8,
		"num_hidden_layers": 92, "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "use_qk_norm": true, "vocab_size": 151552}`, "", 352.8, 376832},
	{"GLM-5", `{"first_k_dense_replace": 3, "head_dim": 64, "hidden_act": "silu", "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "indexer_rope_interleave": true,
		"intermediate_size": 12288, "kv_lora_rank": 512, "max_position_embeddings": 202752, "model_type": "glm_moe_dsa", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
		"n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78, "num_key_value_heads": 64, "num_nextn_predict_layers": 1, "q_lora_rank": 2048,
		"qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "tie_word_embeddings": false, "dtype": "bfloat16", "v_head_dim": 256, "vocab_size": 154880}`, "", 743.9, 100152},
	{"GLM-5.2", `{"first_k_dense_replace": 3, "head_dim": 192, "hidden_act": "silu", "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32, "index_skip_topk_offset": 3, "index_topk": 2048,
		"index_topk_freq": 4, "index_share_for_mtp_iteration": true, "intermediate_size": 12288, "kv_lora_rank": 512, "max_position_embeddings": 1048576, "model_type": "glm_moe_dsa",
		"moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78, "num_key_value_heads": 64,
		"num_nextn_predict_layers": 1, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "vocab_size": 154880}`, "", 743.3, 92628},
	{"Qwen3-235B-A22B", `{"decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "max_position_embeddings": 40960, "max_window_layers": 94,
		"mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 1536, "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 94,
		"num_key_value_heads": 4, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 151936}`, "", 235.09, 192512},
	{"Qwen3-MoE of other layers", `{"decoder_sparse_step": 2, "head_dim": 128, "hidden_size": 2048, "mlp_only_layers": [0, 3], "model_type": "qwen3_moe", "num_experts": 128, "vocab_size": 151936}`,
		"not modelled: decoder_sparse_step = 2, mlp_only_layers", 0, 0},
	{"Command A", `{"head_dim": 128, "hidden_act": "silu", "hidden_size": 12288, "intermediate_size": 36864, "max_position_embeddings": 131072, "model_type": "cohere2", "num_attention_heads": 96,
		"num_hidden_layers": 64, "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_pattern": 4, "vocab_size": 256000}`, "", 111.1, 262144},
	{"MiniMax-M2 of 4 layers", `{"attn_type_list": [1, 1, 1, 1], "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 1536, "max_position_embeddings": 196608,
		"model_type": "minimax_m2", "num_attention_heads": 48, "num_experts_per_tok": 8, "num_hidden_layers": 4, "num_key_value_heads": 8, "num_local_experts": 256, "num_mtp_modules": 3,
		"tie_word_embeddings": false, "vocab_size": 200064}`, "", 15.90, 16384},
	{"MiniMax-Text-01", `{"attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1], "hidden_act": "silu", "hidden_size": 6144, "intermediate_size": 9216, "max_position_embeddings": 10240000, "model_type": "minimax_text_01",
		"num_attention_heads": 64, "num_experts_per_tok": 2, "num_hidden_layers": 80, "num_key_value_heads": 8, "num_local_experts": 32, "vocab_size": 200064}`,
		`model_type "minimax_text_01" is not modelled: attn_type_list, num_experts_per_tok = 2, num_local_experts = 32`, 0, 0},
	{"gemma-3-1b", `{"attn_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 6912, "max_position_embeddings": 32768,
		"model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype": "bfloat16",
		"vocab_size": 262144}`, "", 1.0, 26624},
	{"Llama of FP8", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072, "model_type": "llama", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "quantization_config": {"quant_method": "fp8"}, "torch_dtype": "bfloat16", "vocab_size": 128256}`, "", 8.03, 131072},
	{"glm-4-9b-chat-1m", `{"add_bias_linear": false, "add_qkv_bias": true, "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128, "model_type": "chatglm", "multi_query_attention": true,
		"multi_query_group_num": 4, "num_attention_heads": 32, "num_layers": 40, "original_rope": true, "padded_vocab_size": 151552, "seq_length": 1048576, "torch_dtype": "bfloat16"}`, "", 9.48, 81920},
	{"GLM-4-9B-0414", `{"attention_bias": true, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696, "max_position_embeddings": 32768, "model_type": "glm4",
		"num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2, "partial_rotary_factor": 0.5, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 151552}`, "", 9.40, 40960},
	{"Phi-3-mini-128k", `{"hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 131072, "model_type": "phi3", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "sliding_window": 262144, "torch_dtype": "bfloat16", "vocab_size": 32064}`, "", 3.82, 393216},
	{"Phi-3-mini-4k", `{"hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 32, "sliding_window": 2047, "torch_dtype": "bfloat16", "vocab_size": 32064}`, "", 3.82, 393216},
	{"gemma-7b", `{"head_dim": 256, "hidden_act": "gelu", "hidden_size": 3072, "intermediate_size": 24576, "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 16,
		"num_hidden_layers": 28, "num_key_value_heads": 16, "torch_dtype": "bfloat16", "vocab_size": 256000}`, "", 8.54, 458752},
	{"gemma-2-9b", `{"attn_logit_softcapping": 50.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3584, "intermediate_size": 14336, "max_position_embeddings": 8192,
		"model_type": "gemma2", "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_size": 4096, "vocab_size": 256000}`,
		"", 9.24, 344064},
	{"gemma-3-4b", `{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
		"num_hidden_layers": 34, "rope_scaling": {"factor": 8.0}, "sliding_window": 1024}, "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152}}`,
		`num_key_value_heads: missing, and model_type "gemma3_text" says nothing of it`, 0, 0},
	{"gpt-oss-20b", `{"attention_bias": true, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
		"max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
		"num_local_experts": 32, "quantization_config": {"quant_method": "mxfp4"}, "sliding_window": 128, "tie_word_embeddings": false, "vocab_size": 201088}`, "", 20.91, 49152},
	{"gpt-oss-120b", `{"attention_bias": true, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880, "max_position_embeddings": 131072,
		"model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128,
		"quantization_config": {"quant_method": "mxfp4"}, "sliding_window": 128, "vocab_size": 201088}`,
		"", 116.8, 73728},
	{"falcon-mamba-7b", `{"conv_kernel": 4, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 8192, "model_type": "falcon_mamba", "num_hidden_layers": 64, "state_size": 16,
		"time_step_rank": 256, "torch_dtype": "bfloat16", "vocab_size": 65024}`,
		`model_type "falcon_mamba" is not modelled: conv_kernel = 4, state_size = 16, time_step_rank = 256`, 0, 0},
	{"Jamba-v0.1", `{"attn_layer_offset": 4, "attn_layer_period": 8, "expert_layer_offset": 1, "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
		"mamba_d_conv": 4, "mamba_d_state": 16, "mamba_proj_bias": false, "max_position_embeddings": 262144, "model_type": "jamba", "num_attention_heads": 32, "num_experts": 16,
		"num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": null, "vocab_size": 65536}`,
		`model_type "jamba" is not modelled: attn_layer_period = 8, expert_layer_period = 2, mamba_d_conv = 4, mamba_d_state = 16, num_experts = 16, num_experts_per_tok = 2`, 0, 0},
	{"Qwen3-Next", `{"full_attention_interval": 4, "head_dim": 256, "hidden_size": 2048, "intermediate_size": 5120, "linear_conv_kernel_dim": 4, "linear_num_key_heads": 16,
		"max_position_embeddings": 262144, "model_type": "qwen3_next", "num_attention_heads": 16, "num_experts": 512, "num_hidden_layers": 48, "num_key_value_heads": 2, "vocab_size": 151936}`,
		`model_type "qwen3_next" is not modelled: full_attention_interval = 4, linear_conv_kernel_dim = 4, linear_num_key_heads = 16, num_experts = 512`, 0, 0},
	{"bert-base-uncased", `{"architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072, "max_position_embeddings": 512, "model_type": "bert",
		"num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522}`,
		`model_type "bert" is not modelled: type_vocab_size = 2, hidden_act = "gelu" without a model_type that tells if the FFN is gated`, 0, 0},
	{"t5-small", `{"d_ff": 2048, "d_model": 512, "is_encoder_decoder": true, "model_type": "t5", "num_decoder_layers": 6, "num_layers": 6, "vocab_size": 32128}`,
		`model_type "t5" is not modelled: is_encoder_decoder = true, num_decoder_layers = 6`, 0, 0},
	{"gpt2", `{"activation_function": "gelu_new", "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}`,
		`model_type "gpt2" is not modelled: no num_hidden_layers`, 0, 0},
	{"opt-6.7b", `{"activation_function": "relu", "ffn_dim": 16384, "hidden_size": 4096, "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 32, "num_hidden_layers": 32,
		"torch_dtype": "float16", "vocab_size": 50272}`, `model_type "opt" is not modelled: no intermediate_size`, 0, 0},
	{"phi-2", `{"hidden_act": "gelu_new", "hidden_size": 2560, "intermediate_size": 10240, "max_position_embeddings": 2048, "model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32,
		"num_key_value_heads": 32, "torch_dtype": "float16", "vocab_size": 51200}`, `model_type "phi" is not modelled: hidden_act = "gelu_new" without a model_type that tells if the FFN is gated`, 0, 0},
	{"starcoder2-7b", `{"hidden_act": "gelu_pytorch_tanh", "hidden_size": 4608, "intermediate_size": 18432, "max_position_embeddings": 16384, "model_type": "starcoder2", "num_attention_heads": 36,
		"num_hidden_layers": 32, "num_key_value_heads": 4, "sliding_window": 4096, "vocab_size": 49152}`,
		`model_type "starcoder2" is not modelled: sliding_window = 4096, hidden_act = "gelu_pytorch_tanh" without a model_type that tells if the FFN is gated`, 0, 0},
	{"Llama-2-7B-GPTQ", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 32, "quantization_config": {"bits": 4, "group_size": 128, "quant_method": "gptq"}, "torch_dtype": "float16", "vocab_size": 32000}`,
		"", 6.74, 524288},
	{"Llama-3.1-8B-FP8", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072, "model_type": "llama", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "quantization_config": {"quant_method": "fbgemm_fp8"}, "torch_dtype": "bfloat16", "vocab_size": 128256}`,
		"", 8.03, 131072},
	{"llava-1.5-7b-hf", `{"architectures": ["LlavaForConditionalGeneration"], "image_token_index": 32000, "model_type": "llava", "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5",
		"max_position_embeddings": 4096, "model_type": "llama", "torch_dtype": "float16", "vocab_size": 32064}, "torch_dtype": "float16", "vision_config": {"hidden_size": 1024}, "vocab_size": 32064}`,
		"has no num_hidden_layers or num_layers; add it, or save the config.json of the model's own " +
			"checkpoint, because files of a wrapper or an adapter lack it", 0, 0},
	{"llava-v1.5-7b", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "mm_projector_type": "mlp2x_gelu",
		"mm_vision_tower": "openai/clip-vit-large-patch14-336", "model_type": "llava", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32000}`,
		"", 6.74, 524288},
	{"Olmo-3-32B", `{"hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27648, "max_position_embeddings": 65536, "model_type": "olmo3", "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8, "sliding_window": 4096, "vocab_size": 100278}`,
		"", 32.2, 262144},
	{"EXAONE-4.0-32B", `{"head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27392, "max_position_embeddings": 131072, "model_type": "exaone4",
		"num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_pattern": 4, "vocab_size": 102400}`, "", 32.0, 262144},
	{"dots.llm1", `{"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 10944, "max_position_embeddings": 32768, "model_type": "dots1",
		"moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 128, "n_shared_experts": 2, "num_attention_heads": 32, "num_experts_per_tok": 6, "num_hidden_layers": 62,
		"num_key_value_heads": 32, "vocab_size": 152064}`, "", 142.8, 1015808},
	{"Ling-1T", `{"first_k_dense_replace": 4, "head_dim": 128, "hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 18432, "max_position_embeddings": 32768, "model_type": "bailing_moe",
		"moe_intermediate_size": 2048, "moe_router_enable_expert_bias": true, "moe_shared_expert_intermediate_size": 2048, "num_attention_heads": 64, "num_experts": 256, "num_experts_per_tok": 8,
		"num_hidden_layers": 80, "num_key_value_heads": 8, "num_shared_experts": 1,
		"vocab_size": 157184}`, "", 999.7, 327680},
	{"ERNIE-4.5-300B", `{"hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 28672, "max_position_embeddings": 131072, "model_type": "ernie4_5_moe", "moe_capacity": [64, 64, 64],
		"moe_gate": "topk", "moe_intermediate_size": 3584, "moe_k": 8, "moe_layer_end_index": 53, "moe_layer_interval": 1, "moe_layer_start_index": 3, "moe_num_experts": 64,
		"moe_num_shared_experts": 0, "moe_use_aux_free": true, "num_attention_heads": 64, "num_hidden_layers": 54, "num_key_value_heads": 8, "vocab_size": 103424}`, "", 299.6, 221184},
	{"ERNIE-4.5 of other layers", `{"model_type": "ernie4_5_moe", "moe_layer_end_index": 9, "moe_layer_interval": 2, "num_hidden_layers": 54, "vocab_size": 103424}`,
		"not modelled: moe_layer_end_index = 9, moe_layer_interval = 2", 0, 0},
	{"Ministral-3-14B", `{"head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 16384, "max_position_embeddings": 262144, "model_type": "ministral3",
		"num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": null, "vocab_size": 131072}`, "", 13.5, 163840},
	{"Gemma 4", `{"global_head_dim": 512, "head_dim": 256, "hidden_size": 5376, "model_type": "gemma4_text", "num_global_key_value_heads": 4, "num_key_value_heads": 16, "vocab_size": 262144}`,
		`model_type "gemma4_text" is not modelled: global_head_dim = 512, ` +
			`num_global_key_value_heads = 4`, 0, 0},
	{"Yi-9B-200K", `{"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 200000, "model_type": "Yi", "num_attention_heads": 32, "num_hidden_layers": 48,
		"num_key_value_heads": 4, "torch_dtype": "bfloat16", "vocab_size": 64000}`, "", 8.83, 98304},
}

func TestPublishedConfigs(t *testing.T) {
	for _, c := range published {
		m, err := ParseConfig("config.json", []byte(c.json))
		if c.want != "" {
			text := "config.json: " + c.want
			if strings.Contains(text, "not modelled") {
				text += "; " + supported
			}
			if err == nil || err.Error() != text {
				t.Errorf("%s: got %v\nwant %s", c.name, err, text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if n := float64(m.Parameters()) / 1e9; n < c.billions*0.995 || n > c.billions*1.005 ||
			m.KVBytesPerToken() != c.kvBytes {
			t.Errorf("%s: %.3f billion parameters and %d KV bytes a token, want %.3f and %d", c.name, n,
				m.KVBytesPerToken(), c.billions, c.kvBytes)
		}
	}
}

// Each key by itself makes a Llama one that is refused by that key's name, whatever its
// value but nothing.
func TestFeaturesAreRefused(t *testing.T) {
	const llama = `"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 9, "vocab_size": 9, "max_position_embeddings": 99`
	parse := func(more string) error {
		_, err := ParseConfig("c.json", []byte(`{`+llama+`, `+more+`}`))
		return err
	}
	for _, more := range []string{
		`"kv_lora_rank": 512`, `"q_lora_rank": 1`, `"num_local_experts": 8`, `"num_experts": 2`,
		`"n_routed_experts": 64`, `"moe_num_experts": 16`, `"index_topk": 2048`,
		`"sliding_window": 98`, `"layer_types": ["full_attention", "linear_attention"]`,
		`"layer_types": 3`, `"mamba_d_state": 16`,
		`"ssm_cfg": {"layer": 2}`,
		`"rwkv_version": 6`, `"linear_attn_config": {"a": 1}`, `"is_encoder_decoder": true`,
		`"num_nextn_predict_layers": 1`, `"v_head_dim": 8`, `"torch_dtype": "float8_e4m3fn"`,
		`"dtype": "int8"`, `"add_cross_attention": true`,
		`"is_causal": false`, `"attention_chunk_size": 8192`,
		`"dual_chunk_attention_config": {"chunk_size": 262144}`, `"block_configs": [{"a": 1}]`,
	} {
		key := strings.Split(more, `"`)[1]
		if err := parse(more); err == nil ||
			!strings.HasPrefix(err.Error(), "c.json: not modelled: "+key) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", more, err)
		}
	}
	for _, more := range []string{
		`"kv_lora_rank": null`, `"num_local_experts": 0`, `"num_experts": 1`, `"sliding_window": null`,
		`"sliding_window": 99`, `"sliding_window": 8, "use_sliding_window": false`,
		`"layer_types": ["full_attention"]`, `"quantization_config": null`, `"is_encoder_decoder": false`,
		`"v_head_dim": 16`, `"dtype": "bfloat16"`, `"torch_dtype": "torch.float16"`,
		`"torch_dtype": "float32"`, `"torch_dtype": null`, `"vision_config": null`, `"text_config": null`,
		`"is_causal": true`, `"hidden_act": "gelu"`,
	} {
		if err := parse(more); err != nil {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestConfigJSONEdges(t *testing.T) {
	const shape = `"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 9, "vocab_size": 9, "max_position_embeddings": 99`
	for _, c := range []struct{ text, want string }{
		{"\xef\xbb\xbf{" + shape + "}", ""},
		{"[]", "c.json:1: want an object, got array"},
		{"null", "c.json:1: want an object, got null"},
		{`"llama"`, "c.json:1: want an object, got string"},
		{`{` + shape + `, "hidden_act": "gelu"}`,
			`c.json: not modelled: hidden_act = "gelu" without a model_type that tells if the FFN is gated`},
		{`{` + shape + `, "hidden_act": "silu"}`, ""},
		{`{` + shape + `, "model_type": "lama"}`, ""},
		{`{` + shape + `, "model_type": "lama", "hidden_act": "gelu"}`,
			`c.json: model_type "lama" is not modelled: hidden_act = "gelu" without a model_type`},
		{`{"model_type": "lama", "hidden_size": 64}`,
			`c.json: model_type "lama" is not modelled: no num_hidden_layers`},
		{`{` + shape + `, "model_type": "mistral"}`,
			`c.json: num_key_value_heads: missing, and model_type "mistral" says nothing of it`},
		{`{` + shape + `, "num_key_value_heads": 4, "model_type": "qwen3"}`,
			`c.json: head_dim: missing, and model_type "qwen3" says nothing of it`},
	} {
		_, err := ParseConfig("c.json", []byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
