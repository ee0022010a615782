package hw

// Host is the serving framework's CPU time on the critical path.
type Host struct {
	// planning, launches, sampling and bookkeeping, per step
	Step Figure `toml:"step" dim:"time"`
	// additional time of a step per request
	Request Figure `toml:"request,omitempty" dim:"time,optional"`
	// Token is the additional time per prompt token, which is copied and looked up.
	Token Figure `toml:"token,omitempty" dim:"time,optional"`
	// round trip between GPU and CPU from selection to loading, per layer
	LayerSync Figure `toml:"layer_sync" dim:"time"`
	// LayerRate is the rate of a layer's lists: 4 bytes to the host and 4 bytes back per selected
	// block and KV head.
	LayerRate Figure `toml:"layer_rate,omitempty" dim:"rate,optional"`
	// ContinueLatency is the time from the end of a launch of progressive attention to the start of
	// the next one, which depends on its result; not set: LayerSync.
	ContinueLatency Figure `toml:"continue_latency,omitempty" dim:"time,optional"`
	// SparseLayer is the CPU time to launch a layer with block selection, which no CUDA graph holds.
	// It overlaps the GPU's work and is a lower bound of the layer's time.
	SparseLayer Figure `toml:"sparse_layer,omitempty" dim:"time,optional"`
	// EagerLayer is the same bound for a layer of any batch without a CUDA graph
	// (EngineCosts.Graphs).
	EagerLayer Figure `toml:"eager_layer,omitempty" dim:"time,optional"`
}
