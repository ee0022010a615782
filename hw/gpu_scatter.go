package hw

// gpuScatter is one scatter kernel. While it runs, compute loses the share contention of its speed:
//
//	t = max(floor, launch + n block + B / rate)
func (t *transfer) gpuScatter(f *Saving) {
	t.launch, t.block, t.floor = f.GPULaunch.SI(), f.GPUBlock.optional(), f.GPUFloor.optional()
	t.rate, t.contention = f.GPURate.SI(), f.Contention.SI()
}
