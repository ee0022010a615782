package hw

// flashH2D is one gather kernel:
//
//	t = max(floor, launch + B / rate(pool))
//
// rate falls with the size of the host pool (TLB reach), linearly in log size. launch and floor
// include submission and wait.
func (t *transfer) flashH2D(f *Loading) {
	t.launch, t.floor = f.FlashLaunch.SI(), f.FlashFloor.optional()
	for _, r := range f.Flash {
		t.rates.add(r.PoolGiB*(1<<30), r.SI())
	}
}
