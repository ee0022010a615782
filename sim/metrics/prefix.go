package metrics

// PrefixUse counts the use of the prefix cache.
type PrefixUse struct {
	Asked           int64 // prompt tokens of first prefills that began
	Hit             int64 // hit tokens
	HitDRAM, HitSSD int64 // hit tokens below HBM; with offloading all hits are in DRAM
	// Again counts tokens of prefills that restarted after a preemption or a replica's failure,
	// generated tokens included. HitAgain counts their cached tokens, which mostly come from the same
	// request.
	Again, HitAgain int64
	// Evicted counts HBM blocks whose content was evicted, EvictedDRAM and EvictedSSD chunks.
	Evicted, EvictedDRAM, EvictedSSD int64
	// Bytes. Loaded: to HBM, including LoadedSSD from SSD. Saved: to DRAM, or through DRAM to SSD if
	// there is no DRAM tier. SavedSSD: written to SSD.
	Loaded, LoadedSSD, Saved, SavedSSD int64
}

// Add adds o to u.
func (u *PrefixUse) Add(o *PrefixUse) {
	u.Asked += o.Asked
	u.Hit += o.Hit
	u.HitDRAM += o.HitDRAM
	u.Again += o.Again
	u.HitAgain += o.HitAgain
	u.HitSSD += o.HitSSD
	u.Evicted += o.Evicted
	u.EvictedDRAM += o.EvictedDRAM
	u.EvictedSSD += o.EvictedSSD
	u.Loaded += o.Loaded
	u.LoadedSSD += o.LoadedSSD
	u.Saved += o.Saved
	u.SavedSSD += o.SavedSSD
}

// PrefixStats summarises the prefix cache of a run.
type PrefixStats struct {
	PromptTokens int64   `json:"prompt_tokens"` // of first prefills that began
	HitTokens    int64   `json:"hit_tokens"`
	HitShare     float64 `json:"hit_share"` // HitTokens / PromptTokens
	// Preempted counts prefills that restarted after a preemption or a replica's failure.
	Preempted PrefixAgain `json:"preempted,omitzero"`
	// Hits and evictions per tier. Evictions count blocks in HBM and chunks below.
	HBM  PrefixTier `json:"hbm"`
	DRAM PrefixTier `json:"dram,omitzero"`
	SSD  PrefixTier `json:"ssd,omitzero"`
}

// PrefixAgain counts tokens of prefills that restarted after a preemption or a replica's failure.
type PrefixAgain struct {
	PromptTokens int64 `json:"prompt_tokens"` // including generated tokens
	HitTokens    int64 `json:"hit_tokens"`
}

// PrefixTier holds the counts of one tier.
type PrefixTier struct {
	HitTokens    int64 `json:"hit_tokens"`
	Evicted      int64 `json:"evicted"`
	LoadedBytes  int64 `json:"loaded_bytes,omitempty"`  // from this tier
	WrittenBytes int64 `json:"written_bytes,omitempty"` // to this tier
}

// stats summarises the counts. Without a DRAM tier, saves pass through DRAM to SSD and do not count
// as written to DRAM.
func (u *PrefixUse) stats(dram bool) *PrefixStats {
	below, toDRAM := u.HitDRAM+u.HitSSD, u.Saved
	if !dram {
		toDRAM = 0
	}
	return &PrefixStats{PromptTokens: u.Asked, HitTokens: u.Hit,
		HitShare:  float64(u.Hit) / float64(max(1, u.Asked)),
		Preempted: PrefixAgain{u.Again, u.HitAgain},
		HBM:       PrefixTier{HitTokens: u.Hit - below, Evicted: u.Evicted},
		DRAM: PrefixTier{HitTokens: u.HitDRAM, Evicted: u.EvictedDRAM,
			LoadedBytes: u.Loaded - u.LoadedSSD, WrittenBytes: toDRAM},
		SSD: PrefixTier{HitTokens: u.HitSSD, Evicted: u.EvictedSSD, LoadedBytes: u.LoadedSSD,
			WrittenBytes: u.SavedSSD}}
}
