package hw

// flashH2D is one gather kernel:
//
//	t = max(floor, launch + n block + B / rate(pool))
//
// rate falls with the size of the host pool (TLB reach), linearly in log size. launch and floor
// include submission and wait.
func (t *transfer) flashH2D(f *Loading) {
	t.launch, t.block, t.floor = f.FlashLaunch.SI(), f.FlashBlock.optional(), f.FlashFloor.optional()
	t.stream = f.FlashStream.optional()
	for _, r := range f.Flash {
		t.rates.add(r.PoolGiB*(1<<30), r.SI())
	}
}

// inStream is the time within a stream of kernels, as for a layer's loads:
//
//	t = max(stream + n block + B / rate(pool), B / link)
//
// Loads that synchronise with another stream take as long as if they were submitted and waited for.
func (t *transfer) inStream(n, blockBytes int64) float64 {
	if t.stream == 0 || n <= 0 {
		return t.seconds(n, blockBytes)
	}
	among := *t
	among.launch, among.floor = t.stream, 0
	return among.seconds(n, blockBytes)
}

// LoadStreamSeconds is LoadSeconds for FlashH2D within a stream.
func (p *Profile) LoadStreamSeconds(blocks, blockBytes, poolBytes int64) (float64, error) {
	l, err := newLoader(p, LoadFlash)
	l.over(poolBytes)
	return l.inStream(blocks, blockBytes), err
}
