package traces

import "sparseserve/sim/des"

// vidurCSV is the trace format of the Vidur simulator
// (github.com/microsoft/vidur; Agrawal et al., MLSys 2024). Times are seconds.
// Its traces of lengths alone lack arrived_at.
func vidurCSV() csvFormat {
	return csvFormat{
		time: "arrived_at", prompt: "num_prefill_tokens", output: "num_decode_tokens",
		unit: des.Second, timeOptional: true,
	}
}
