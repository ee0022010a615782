package metrics

// PrefixStats counts the use of the prefix cache in a step or in a run.
type PrefixStats struct {
	PromptTokens int64   `json:"prompt_tokens"` // of first prefills that began
	HitTokens    int64   `json:"hit_tokens"`
	HitShare     float64 `json:"hit_share"` // HitTokens / PromptTokens, of a run
	// Preempted counts prefills that restarted after a preemption or a replica's failure.
	Preempted PrefixAgain `json:"preempted,omitzero"`
	// Hits and evictions per tier. Evictions count blocks in HBM and chunks below. With offloading
	// all hits are in DRAM.
	HBM  PrefixTier `json:"hbm"`
	DRAM PrefixTier `json:"dram,omitzero"`
	SSD  PrefixTier `json:"ssd,omitzero"`
}

// PrefixAgain counts tokens of prefills that restarted after a preemption or a replica's failure.
// The hits mostly come from the same request.
type PrefixAgain struct {
	PromptTokens int64 `json:"prompt_tokens"` // including generated tokens
	HitTokens    int64 `json:"hit_tokens"`
}

// PrefixTier holds the counts of one tier.
type PrefixTier struct {
	HitTokens   int64 `json:"hit_tokens"`
	Evicted     int64 `json:"evicted"`
	LoadedBytes int64 `json:"loaded_bytes,omitempty"` // from this tier
	// to this tier; of a step, to DRAM or, without a DRAM tier, through it to SSD
	WrittenBytes int64 `json:"written_bytes,omitempty"`
}

// Add adds o to s.
func (s *PrefixStats) Add(o *PrefixStats) {
	s.PromptTokens += o.PromptTokens
	s.HitTokens += o.HitTokens
	s.Preempted.PromptTokens += o.Preempted.PromptTokens
	s.Preempted.HitTokens += o.Preempted.HitTokens
	s.HBM.add(&o.HBM)
	s.DRAM.add(&o.DRAM)
	s.SSD.add(&o.SSD)
}

func (t *PrefixTier) add(o *PrefixTier) {
	t.HitTokens += o.HitTokens
	t.Evicted += o.Evicted
	t.LoadedBytes += o.LoadedBytes
	t.WrittenBytes += o.WrittenBytes
}

// ofRun returns the counts of a run, with a DRAM tier or without.
func (s PrefixStats) ofRun(dram bool) *PrefixStats {
	s.HitShare = float64(s.HitTokens) / float64(max(1, s.PromptTokens))
	if !dram {
		s.DRAM.WrittenBytes = 0
	}
	return &s
}
