package cuda

// Fill writes what FillArgs does (fill.cu), bit for bit: dst[i] = scale (2u - 1), two values of 24
// random bits from each pair's hash. The subtraction is exact in float32, so only the product and
// the conversion round, as on the GPU.
func Fill(dst []Half, seed uint64, scale float32) {
	for i := range dst {
		bits := Mix(seed ^ Mix(uint64(i/2)))
		if i%2 == 1 {
			bits >>= 32
		}
		u := float32(uint32(bits)>>8) * 0x1p-24
		dst[i] = HalfOf(float64(scale * (2*u - 1)))
	}
}

// Mix is the finaliser of SplitMix64, as in fill.cu.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
