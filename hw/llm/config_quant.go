package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// hfQuantization holds the keys of a quantization_config about weights and KV. Methods name the
// same things differently.
type hfQuantization struct {
	Method string `json:"quant_method"`
	Block  []int  `json:"weight_block_size"` // fp8

	Bits      int  `json:"bits"` // awq, gptq
	GroupSize int  `json:"group_size"`
	ZeroPoint bool `json:"zero_point"`
	// gptq, auto-round: patterns of layers of other bits; "-:" begins those that are left in 16
	Dynamic map[string]hfLayerBits `json:"dynamic"`
	Extra   map[string]hfLayerBits `json:"extra_config"`

	Algo   string `json:"quant_algo"` // modelopt
	KVAlgo string `json:"kv_cache_quant_algo"`
	Groups map[string]struct {
		Targets []string  `json:"targets"` // classes or patterns of layers; none: all linears
		Weights hfNumber  `json:"weights"`
		Inputs  *hfNumber `json:"input_activations"` // null: in 16 bits
	} `json:"config_groups"` // compressed-tensors
	KV hfNumber `json:"kv_cache_scheme"`

	// patterns of layers left in 16 bits, by method
	Ignore   []string `json:"ignore"`
	Kept     []string `json:"modules_to_not_convert"`
	Ignored  []string `json:"ignored_layers"`
	Excluded []string `json:"exclude_modules"`
}

// hfLayerBits is how one layer is stored in place of the others.
type hfLayerBits struct {
	Bits int `json:"bits"`
}

// wide returns the patterns of layers left in 16 bits, and one of a layer in a third format, or "".
func (q *hfQuantization) wide() (patterns []string, other string) {
	patterns = slices.Concat(q.Ignore, q.Kept, q.Ignored, q.Excluded)
	for _, layers := range []map[string]hfLayerBits{q.Dynamic, q.Extra} {
		for pattern, as := range layers {
			switch {
			case strings.HasPrefix(pattern, "-:") || as.Bits >= 16:
				patterns = append(patterns, pattern)
			case as.Bits != 0 && as.Bits != q.Bits:
				other = max(other, pattern)
			}
		}
	}
	return patterns, other
}

// ofExperts reports whether the groups quantise experts alone. It returns an error if they quantise
// neither experts alone nor all linears.
func (q *hfQuantization) ofExperts() (experts bool, err error) {
	for name, g := range q.Groups {
		switch {
		case len(g.Targets) == 0 || slices.Contains(g.Targets, "Linear"):
		case strings.Count(strings.Join(g.Targets, "\n")+"\n", "experts") >= len(g.Targets):
			experts = true
		default:
			return false, fmt.Errorf("config_groups.%s.targets = %q: a format of some linears is not "+
				"modelled, but of experts or of all (Linear)", name, g.Targets)
		}
	}
	return experts, nil
}

// hfNumber is how numbers are stored.
type hfNumber struct {
	Bits      int    `json:"num_bits"`
	Type      string `json:"type"` // int, float
	GroupSize int    `json:"group_size"`
	Block     []int  `json:"block_structure"`
}

// modelOptAlgos are the modelled values of quant_algo.
var modelOptAlgos = map[string]hfNumber{"FP8": {Bits: 8, Type: "float"},
	"NVFP4": {Bits: 4, Type: "float", GroupSize: 16}, "W4A16_AWQ": {4, "int", 128, nil}}

// MXFP4Bytes is the bytes per weight: 4 bits, and a scale of 8 bits per 32 weights.
const MXFP4Bytes = (4 + 8./32) / 8

// weightFormat is how the weights of linears are stored, as Model has it.
type weightFormat struct {
	kind  string
	bytes float64
	block int
}

// format returns the format of stored weights. Integers have a 16-bit scale per group of weights,
// or per row, and may have a zero point as wide as a weight.
func (n hfNumber) format(zeros, inputs bool) (weightFormat, error) {
	group := float64(n.GroupSize)
	if group < 1 {
		group = 4096
	}
	switch {
	case n.Type == "float" && n.Bits == 8:
		return weightFormat{bytes: 1, block: append(n.Block, 0)[0]}, nil
	case n.Type == "float" && n.Bits == 4 && group == 16:
		return weightFormat{kind: "nvfp4", bytes: (4 + 8./16) / 8}, nil
	case n.Type == "float" && n.Bits == 4 && group == 32:
		return weightFormat{kind: "mxfp4", bytes: MXFP4Bytes}, nil
	case n.Type == "int" && n.Bits == 8 && inputs:
		return weightFormat{kind: "int8", bytes: 1}, nil
	case n.Type == "int" && (n.Bits == 8 || n.Bits == 4) && !inputs:
		scale := 16.
		if zeros {
			scale += float64(n.Bits)
		}
		return weightFormat{kind: fmt.Sprintf("int%d_wo", n.Bits),
			bytes: (float64(n.Bits) + scale/group) / 8}, nil
	}
	return weightFormat{}, fmt.Errorf("weights of %d bits (%s) in groups of %d are not modelled",
		n.Bits, n.Type, n.GroupSize)
}

// format returns how all weights are stored. Its error names the key that is not modelled.
func (q *hfQuantization) format() (all weightFormat, err error) {
	switch method, algo := strings.ToLower(q.Method), strings.ToUpper(q.Algo); {
	case method == "fp8" || method == "fbgemm_fp8":
		return hfNumber{8, "float", 0, q.Block}.format(false, true)
	case method == "mxfp4":
		return hfNumber{4, "float", 32, nil}.format(false, false)
	case method == "awq" || method == "gptq" || method == "auto-round":
		return hfNumber{q.Bits, "int", q.GroupSize, nil}.format(q.ZeroPoint, false)
	case len(q.Groups) == 0 && modelOptAlgos[algo].Bits > 0:
		return modelOptAlgos[algo].format(false, false)
	case len(q.Groups) == 0 && method == "compressed-tensors":
		return all, fmt.Errorf("config_groups: missing, so that no format of weights is known")
	case len(q.Groups) == 0 && q.Algo != "":
		return all, fmt.Errorf("quant_algo = %s is not modelled", q.Algo)
	case len(q.Groups) == 0:
		return all, fmt.Errorf("quant_method = %s is not modelled; modelled are fp8, "+
			"compressed-tensors, modelopt, awq, gptq, auto-round and mxfp4", cmp.Or(q.Method, "missing"))
	}
	for name, g := range q.Groups {
		f, err := g.Weights.format(false, g.Inputs != nil)
		switch {
		case err != nil:
			return f, fmt.Errorf("config_groups.%s: %w", name, err)
		case all.bytes > 0 && f != all:
			return f, fmt.Errorf("config_groups: groups in several formats are not modelled")
		}
		all = f
	}
	return all, nil
}

// addQuantFile adds what hf_quant_config.json in the folder of a config.json says of numbers, where
// NVIDIA's checkpoints have it. It returns that place, or "".
func (c rawConfig) addQuantFile(file string) (at string, err error) {
	if c.set("quantization_config") || filepath.Base(file) != "config.json" {
		return "", nil
	}
	path := filepath.Join(filepath.Dir(file), "hf_quant_config.json")
	data, err := files.ReadText(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("model: %w", err)
	}
	var all struct {
		Quantization json.RawMessage `json:"quantization"`
	}
	err = files.ParseJSON(path, data, &all)
	c["quantization_config"] = all.Quantization
	return fmt.Sprintf("%s:%d: quantization", path, lineOf(data, "quantization")), err
}

// quantize sets the bytes per weight and per KV element.
func (c rawConfig) quantize(m *Model) error {
	var q hfQuantization
	if !c.set("quantization_config") {
		return nil
	} else if err := json.Unmarshal(c["quantization_config"], &q); err != nil {
		return err
	}
	patterns, other := q.wide()
	wide := slices.ContainsFunc(patterns, func(pattern string) bool {
		return strings.Contains(pattern, "self_attn") && !strings.Contains(pattern, "norm")
	})
	f, err := q.format()
	experts, err2 := q.ofExperts()
	wide = wide || experts
	switch {
	case err != nil:
		return err
	case err2 != nil:
		return err2
	case other != "":
		return fmt.Errorf("%s: layers in several formats are not modelled", other)
	case m.IsMixture() && (wide || f.kind == "mxfp4"): // experts alone
		m.ExpertBytesEach, m.WeightType = f.bytes, f.kind
	case wide:
		return fmt.Errorf("attention in 16 bits beside a narrower FFN is not modelled")
	default:
		m.WeightBytesEach, m.WeightType, m.WeightBlock = f.bytes, f.kind, f.block
	}
	if q.KV.Bits == 8 || strings.EqualFold(q.KVAlgo, "FP8") {
		m.KVBytesEach = 1
	}
	return nil
}

// lineOf returns the line of a key in a JSON text, from 1.
func lineOf(text []byte, key string) int {
	return 1 + bytes.Count(text[:max(0, bytes.Index(text, []byte(`"`+key+`"`)))], []byte("\n"))
}
