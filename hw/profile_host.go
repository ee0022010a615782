package hw

// Host is the serving framework's CPU time on the critical path.
type Host struct {
	// planning, launches, sampling, bookkeeping, per step
	Step Figure `toml:"step" dim:"time"`
	// the same, for each request of the step
	Request Figure `toml:"request,omitempty" dim:"time,optional"`
	// Token is the same for each token of a prompt, which is copied and looked up.
	Token Figure `toml:"token,omitempty" dim:"time,optional"`
	// GPU-CPU round trip between selection and loading, per layer
	LayerSync Figure `toml:"layer_sync" dim:"time"`
	// LayerRate is of the layer's lists: 4 bytes down, and as many
	// up, for each selected block and KV head.
	LayerRate Figure `toml:"layer_rate,omitempty" dim:"rate,optional"`
	// LayerRequest is the additional time of each request of the layer, however long its lists are.
	LayerRequest Figure `toml:"layer_request,omitempty" dim:"time,optional"`
	// FreeBlock is the host's time, between two steps, for each block of each
	// layer and KV head that a request which ends gives back.
	FreeBlock Figure `toml:"free_block,omitempty" dim:"time,optional"`
	// LoadBlock is the host's time for each block that a layer loads, where it looks the
	// layer's lists up: it gives the block a slot and addresses both copies, while the GPU waits.
	// A block that is missed and gets the slot in which another request has it costs as much.
	// Where EvictBlock is not known it has that time too.
	LoadBlock Figure `toml:"load_block,omitempty" dim:"time,optional"`
	// EvictBlock is the additional time for each block that gives its slot up, in layers that
	// load or join.
	EvictBlock Figure `toml:"evict_block,omitempty" dim:"time,optional"`
	// ContinueLatency is how long after a launch of progressive attention ends the CPU has the next
	// work under way, where it waits for what the launch found; without it, LayerSync.
	ContinueLatency Figure `toml:"continue_latency,omitempty" dim:"time,optional"`
	// SparseLayer is the CPU time in which a layer with block selection is launched kernel by
	// kernel, for want of a CUDA graph. The GPU works meanwhile: it is a floor of the GPU's time.
	SparseLayer Figure `toml:"sparse_layer,omitempty" dim:"time,optional"`
	// EagerLayer is the same of a layer of any batch that no CUDA graph holds (EngineCosts.Graphs).
	EagerLayer Figure `toml:"eager_layer,omitempty" dim:"time,optional"`
}
