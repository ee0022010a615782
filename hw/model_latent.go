package hw

// Latent is multi-head latent attention (DeepSeek-V2, 2024, section 2.1). Keys and values of all
// heads are projections of one latent vector per token. The KV cache holds the latent and a rotated
// part of the key that all heads share.
type Latent struct {
	// KVRank is the size of the latent; 0: no latent attention.
	KVRank   int `toml:"kv_lora_rank,omitempty" json:",omitempty"`
	RopeDim  int `toml:"qk_rope_dim,omitempty" json:",omitempty"` // of a key, shared by all heads
	NopeDim  int `toml:"qk_nope_dim,omitempty" json:",omitempty"` // of each head's key, not rotated
	ValueDim int `toml:"v_head_dim,omitempty" json:",omitempty"`
	// QRank is the size of the query latent; 0: queries are projections of the hidden state.
	QRank int `toml:"q_lora_rank,omitempty" json:",omitempty"`
}

// IsLatent reports whether the KV cache holds latents.
func (m *Model) IsLatent() bool { return m.KVRank > 0 }

// LatentDim returns the size of the dot product of an absorbed query with a row of the cache.
func (l *Latent) LatentDim() int { return l.KVRank + l.RopeDim }

// scaled is the number of values of an FP8 latent that share a float32 scale (FlashMLA, FP8 KV
// cache).
const scaled = 128

// latentRow returns the bytes of a token in one layer. In FP8 the rotated part stays in 16 bits,
// and every 128 values of the latent have a scale.
func (m *Model) latentRow() int64 {
	if m.KVBytesEach == 1 {
		return int64(m.KVRank + 4*(m.KVRank/scaled) + 2*m.RopeDim)
	}
	return int64(m.LatentDim() * m.KVBytesEach)
}

func (m *Model) validateLatent() error {
	if !m.IsLatent() {
		for _, f := range []struct {
			key   string
			value int
		}{{"kv_lora_rank", m.KVRank}, {"qk_rope_dim", m.RopeDim}, {"qk_nope_dim", m.NopeDim},
			{"v_head_dim", m.ValueDim}, {"q_lora_rank", m.QRank}} {
			if f.value != 0 {
				return wrong(f.key, "means something with kv_lora_rank above 0 only, got %d", f.value)
			}
		}
		return nil
	}
	for _, f := range []struct {
		key         string
		value, from int
	}{{"kv_lora_rank", m.KVRank, 1}, {"qk_rope_dim", m.RopeDim, 0}, {"qk_nope_dim", m.NopeDim, 1},
		{"v_head_dim", m.ValueDim, 1}, {"q_lora_rank", m.QRank, 0}} {
		if f.value < f.from || f.value > 1<<14 {
			return wrong(f.key, "want %d to %d, got %d", f.from, 1<<14, f.value)
		}
	}
	switch {
	case m.KVHeads != 1:
		return wrong("kv_heads", "want 1 with kv_lora_rank, as all heads share a latent, got %d",
			m.KVHeads)
	case m.HeadDim != m.NopeDim+m.RopeDim:
		return wrong("head_dim", "want qk_nope_dim + qk_rope_dim = %d, got %d", m.NopeDim+m.RopeDim,
			m.HeadDim)
	case m.KVBytesEach == 1 && m.KVRank%scaled != 0:
		return wrong("kv_lora_rank", "want a multiple of %d in FP8 (kv_bytes_each = 1), got %d", scaled,
			m.KVRank)
	case m.QKVBias:
		return wrong("qkv_bias", "want false with kv_lora_rank, got true")
	}
	return nil
}
