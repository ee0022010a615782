package traces

import "github.com/sparseserve/sparseserve/sim/des"

// mooncake decodes the Mooncake traces (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025):
// timestamp in milliseconds, input_length, output_length. The hash_ids of shared prefixes are
// read over: no system here caches prefixes across requests.
type mooncake struct{}

func newMooncake(*options) decoder { return mooncake{} }

func (mooncake) timeKey() string { return "timestamp" }

func (mooncake) decode(line []byte) (r row, err error) {
	var v struct {
		Timestamp numeral `json:"timestamp"`
		Input     numeral `json:"input_length"`
		Output    numeral `json:"output_length"`
	}
	if err := decodeJSON(line, &v); err != nil {
		return row{}, err
	}
	r.stamp = string(v.Timestamp)
	if r.at, err = parseTime("timestamp", r.stamp, des.Millisecond); err != nil {
		return row{}, err
	}
	if r.prompt, err = parseTokens("input_length", string(v.Input), 1); err != nil {
		return row{}, err
	}
	if r.output, err = parseTokens("output_length", string(v.Output), 1); err != nil {
		return row{}, err
	}
	return r, nil
}
