package traces

import "sparseserve/sim/des"

// burstGPT is the BurstGPT trace (github.com/HPMLL/BurstGPT; Wang et al., KDD
// 2025). Times are seconds; the model is the set. Its authors mark requests
// that failed by 0 response tokens.
func burstGPT() csvFormat {
	return csvFormat{
		time: "Timestamp", prompt: "Request tokens", output: "Response tokens", set: "Model",
		unit: des.Second, zeroFails: true,
	}
}
