package hw

// configType describes the properties that a model_type determines and its config.json may omit.
type configType struct {
	kvHeads bool // num_key_value_heads is required, because its default is not one per query head
	// head_dim is required, because its default is not hidden_size / num_attention_heads
	headDim bool
	tied    bool // default of tie_word_embeddings
	qkvBias bool // the QKV linear always has a bias
	// sliding_window counts only with use_sliding_window, from layer max_window_layers on
	switched bool

	windows string // default of layer_types for sliding_window, as Window.WindowPattern
	latent  bool   // kv_lora_rank: attention with latents
	indexed bool   // index_topk: an indexer
	experts expertKeys
}

// expertKeys are the keys of the number of experts in a config.json.
type expertKeys struct{ experts, shared string }

var (
	deepSeekExperts = expertKeys{"n_routed_experts", "n_shared_experts"}
	qwenExperts     = expertKeys{"num_experts", ""}
	localExperts    = expertKeys{"num_local_experts", ""}
)

var qwen2 = configType{kvHeads: true, qkvBias: true, switched: true}

// configTypes are the model types that Model can represent. A missing model_type counts as Llama.
var configTypes = map[string]configType{
	"": {}, "llama": {}, "yi": {}, "chatglm": {}, "granite": {}, "internlm2": {}, "olmo2": {},
	"qwen2": qwen2, "qwen2_vl": qwen2, "qwen2_5_vl": qwen2, "qwen2_5_vl_text": qwen2,
	"phi3":     {windows: "w"},
	"mistral":  {kvHeads: true, windows: "w"},
	"qwen3":    {kvHeads: true, headDim: true, switched: true},
	"glm":      {kvHeads: true, headDim: true},
	"glm4":     {kvHeads: true, headDim: true},
	"gemma":    {kvHeads: true, headDim: true, tied: true},
	"gemma2":   {kvHeads: true, headDim: true, tied: true, windows: "wf"},
	"stablelm": {kvHeads: true},

	"cohere":            {tied: true},
	"cohere2":           {tied: true, windows: "wwwf"},
	"minimax":           {kvHeads: true, headDim: true, experts: localExperts},
	"minimax_m2":        {kvHeads: true, headDim: true, experts: localExperts},
	"gemma3_text":       {kvHeads: true, headDim: true, tied: true, windows: "wwwwwf"},
	"mixtral":           {kvHeads: true, windows: "w", experts: localExperts},
	"gpt_oss":           {kvHeads: true, headDim: true, windows: "wf", experts: localExperts},
	"qwen3_vl_moe_text": {kvHeads: true, headDim: true, switched: true, experts: qwenExperts},
	"glm4v_moe_text":    {kvHeads: true, headDim: true, experts: deepSeekExperts},
	"qwen3_moe":         {kvHeads: true, headDim: true, switched: true, experts: qwenExperts},
	"glm4_moe":          {kvHeads: true, headDim: true, experts: deepSeekExperts},
	"deepseek_v2":       {latent: true, experts: deepSeekExperts},
	"deepseek_v3":       {latent: true, experts: deepSeekExperts},
	"glm4_moe_lite":     {latent: true, experts: deepSeekExperts},
	"kimi_k2":           {latent: true, experts: deepSeekExperts},
	"deepseek_v32":      {latent: true, indexed: true, experts: deepSeekExperts},
	"glm_moe_dsa":       {latent: true, indexed: true, experts: deepSeekExperts},
}

// supported is the end of the error for an unsupported model.
const supported = "modelled are decoders with a gated FFN or experts, and shapes written as TOML"
