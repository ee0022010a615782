package kv

// ref names a block whose last use was at its request's step stamp.
type ref struct {
	seq   int32
	stamp uint32
	group uint16 // index in the sample
	block uint16
}

// evictor is one eviction order over the blocks of a pool.
type evictor interface {
	// entered is told of a block that got a slot.
	entered(ref)
	// victim returns the next block to evict, or false when none is idle. A
	// layer of 0 or more says that no other sampled layer has idle blocks.
	victim(c *Cache, layer int) (ref, bool)
	// tidy is called between steps, to drop stale refs of a pool of that size.
	tidy(c *Cache, slots int)
}
