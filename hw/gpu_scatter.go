package hw

// gpuScatter is one scatter kernel. While it runs, compute loses the share contention of its speed:
//
//	t = max(floor, launch + B / rate)
func (t *transfer) gpuScatter(f *Saving) {
	t.launch, t.floor = f.GPULaunch.SI(), f.GPUFloor.optional()
	t.rate, t.contention = f.GPURate.SI(), f.Contention.SI()
}
