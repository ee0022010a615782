package hw

// Host is the serving framework's CPU time on the critical path.
type Host struct {
	Step    Figure `toml:"step" dim:"time"`                       // planning, launches, sampling, bookkeeping, per step
	Request Figure `toml:"request,omitempty" dim:"time,optional"` // the same, for each request of the step
	// Token is the same for each token of a prompt, which is copied and looked up.
	Token     Figure `toml:"token,omitempty" dim:"time,optional"`
	LayerSync Figure `toml:"layer_sync" dim:"time"` // GPU-CPU round trip between selection and loading, per layer
	// LayerRate is what the layer's lists take beside: 4 bytes down, and as many
	// up, for each selected block and KV head.
	LayerRate Figure `toml:"layer_rate,omitempty" dim:"rate,optional"`
	// LayerRequest is what each request of the layer takes beside, however long its
	// lists are.
	LayerRequest Figure `toml:"layer_request,omitempty" dim:"time,optional"`
	// PSALayer, PSARequest and PSARate stand for LayerSync, LayerRequest and
	// LayerRate where attention is progressive: its lists are in the order of their
	// rounds, which changes from step to step, and as long as the layer's longest,
	// in whole microbatches. Without them it costs what other selections do.
	PSALayer   Figure `toml:"psa_layer,omitempty" dim:"time,optional"`
	PSARequest Figure `toml:"psa_request,omitempty" dim:"time,optional"`
	PSARate    Figure `toml:"psa_rate,omitempty" dim:"rate,optional"`
	// Turns and PSATurns are the round trip where it was measured batch by batch,
	// without events between a step's phases: LayerSync and PSALayer, with what
	// belongs to them, then only say what other batches and lists take longer.
	Turns    []TurnRow `toml:"turns,omitempty"`
	PSATurns []TurnRow `toml:"psa_turns,omitempty"`
	// WholeList is what a layer's round trip takes longer where what some request
	// selects is looked up whole, for each of its lists, one a KV head; where the GPU
	// looks up, what the CPU takes longer (cpu). Requests are looked up side by side.
	WholeList Figure `toml:"whole_list,omitempty" dim:"time,optional"`
	// FreedBlock is what the host takes, between two steps, for each block of each
	// layer and KV head that a request which ends gives back.
	FreedBlock Figure `toml:"freed_block,omitempty" dim:"time,optional"`
	// Load, Loads and LoadsHalf are what a layer's loads take beside, in which they
	// are looked up and named (hostLoads).
	Load      Figure `toml:"load,omitempty" dim:"time,optional"`        // for each block
	Loads     Figure `toml:"loads,omitempty" dim:"time,optional"`       // where there are many
	LoadsHalf Figure `toml:"loads_half,omitempty" dim:"count,optional"` // blocks at which half of it is paid
	// ListCopy and ListRate are what a layer's lists take of the GPU's time where
	// they go up between its kernels: sparse attention without offloading. With it
	// they go up at the end of the layer's round trip, whose figures have them.
	ListCopy Figure `toml:"list_copy,omitempty" dim:"time,optional" on:"gpu"`
	ListRate Figure `toml:"list_rate,omitempty" dim:"rate,optional" on:"gpu"`
	// KVWrite is what the GPU takes to write K and V of a layer's decodes with a
	// kernel of its own: with offloading their slots are known no sooner than their
	// blocks are looked up. Without, the kernel that turns Q and K writes them.
	KVWrite Figure `toml:"kv_write,omitempty" dim:"time,optional" on:"gpu"`
	// Lookup, LookupRate, LookupMiss and LookupBlock are what the GPU takes to look a
	// layer's lists up itself, with a launch of the gather, behind the layer's weights
	// where it was measured there: bytes are those of the lists, 4 a block; LookupMiss
	// comes on top where any is missing, and LookupBlock for each that is.
	Lookup      Figure `toml:"lookup,omitempty" dim:"time,optional" on:"gpu"`
	LookupRate  Figure `toml:"lookup_rate,omitempty" dim:"rate,optional" on:"gpu"`
	LookupMiss  Figure `toml:"lookup_miss,omitempty" dim:"time,optional" on:"gpu"`
	LookupBlock Figure `toml:"lookup_block,omitempty" dim:"time,optional" on:"gpu"`
	// CPULayer, CPURequest, CPURate and CPULoad are what the CPU is busy with for a
	// layer whose lists the GPU looks up: its calls of the driver and its own books,
	// beside the GPU's work. CPURequest comes for each request, bytes are those of the
	// lists, 4 a block, and CPULoad comes for each block that is missing (cpu).
	CPULayer   Figure `toml:"cpu_layer,omitempty" dim:"time,optional"`
	CPURequest Figure `toml:"cpu_request,omitempty" dim:"time,optional"`
	CPURate    Figure `toml:"cpu_rate,omitempty" dim:"rate,optional"`
	CPULoad    Figure `toml:"cpu_load,omitempty" dim:"time,optional"`
	// CPUPSALayer, CPUPSARequest, CPUPSARate and CPUPSALoad stand for CPULayer,
	// CPURate and CPULoad where attention is progressive: bytes are those of lists
	// as long as the layer's longest. Waits for verdicts, and the calls for rounds
	// that load, come on top (progressive). Without them it costs what other
	// selections do.
	CPUPSALayer   Figure `toml:"cpu_psa_layer,omitempty" dim:"time,optional"`
	CPUPSARequest Figure `toml:"cpu_psa_request,omitempty" dim:"time,optional"`
	CPUPSARate    Figure `toml:"cpu_psa_rate,omitempty" dim:"rate,optional"`
	CPUPSALoad    Figure `toml:"cpu_psa_load,omitempty" dim:"time,optional"`
	// Verdict is how long after a launch of progressive attention ends the CPU has
	// the next work under way, where it waits for what the launch found; without it,
	// LayerSync.
	Verdict Figure `toml:"verdict,omitempty" dim:"time,optional"`
	// Submit is the CPU time of one call of the driver that puts work on a stream.
	Submit Figure `toml:"submit,omitempty" dim:"time,optional"`
	// PSALaunchCalls is that of all calls for one launch of progressive attention that
	// loads; without it, that of as many calls.
	PSALaunchCalls Figure `toml:"psa_launch_calls,omitempty" dim:"time,optional"`
	// SparseLayer is the CPU time in which a layer with block selection is
	// launched kernel by kernel, for want of a CUDA graph. The GPU works
	// meanwhile: it is a floor of the GPU's time.
	SparseLayer Figure `toml:"sparse_layer,omitempty" dim:"time,optional"`
	// EagerLayer is the same of a layer of any batch that no CUDA graph holds
	// (EngineCosts.Graphs).
	EagerLayer Figure `toml:"eager_layer,omitempty" dim:"time,optional"`
	// Between is the GPU's time from one step to the next that no cost model of a layer
	// or of the LM head has: the next batch's inputs are copied, the graph is launched,
	// and a token is drawn by small kernels.
	Between Figure `toml:"between,omitempty" dim:"time,optional" on:"gpu"`
	// CallWait is what each call of the driver takes longer while another thread
	// saves with a memcpy a block: the calls of both queue for the driver's lock.
	// LoadWait is what a memcpy that loads a block waits there, CallWait where it is not
	// given, and CopyWait what one that saves a block waits beside such loads. TurnWait is
	// what a layer's round trip takes longer beside such saves, CallWait a call where it is
	// not given.
	CallWait Figure `toml:"call_wait,omitempty" dim:"time,optional"`
	LoadWait Figure `toml:"load_wait,omitempty" dim:"time,optional"`
	CopyWait Figure `toml:"copy_wait,omitempty" dim:"time,optional"`
	TurnWait Figure `toml:"turn_wait,omitempty" dim:"time,optional"`
}

// TurnRow is a layer's round trip for a batch of requests of a model with so many
// KV heads, whose lists have so many KiB in all.
type TurnRow struct {
	KVHeads  int     `toml:"kv_heads"`
	Requests int     `toml:"requests"`
	ListsKiB float64 `toml:"lists_kib"`
	Figure   `dim:"time"`
}
