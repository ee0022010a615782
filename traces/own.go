package traces

import "sparseserve/sim/des"

// ownCSV is the project's own format, which Convert writes: arrived_s in
// seconds since the first request, prompt_tokens, output_tokens, set. Lengths
// alone lack arrived_s.
func ownCSV() csvFormat {
	return csvFormat{
		time: "arrived_s", prompt: "prompt_tokens", output: "output_tokens", set: "set",
		unit: des.Second, timeOptional: true,
	}
}
