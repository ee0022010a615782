package hw

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// ParseProfile decodes and validates a whole machine in one text, as Encode writes
// it. Errors name file, line, key and value.
func ParseProfile(file string, data []byte) (*Profile, error) {
	p := new(Profile)
	ix, err := decodeTOML(file, data, p)
	if err != nil {
		return nil, err
	}
	return p, ix.place(file, p.validate)
}

// validate returns the path of the first wrong field.
func (p *Profile) validate() (path string, err error) {
	if p.Name == "" {
		return "name", errors.New("want a name")
	}
	if path, err := checkFigures(reflect.ValueOf(*p), "", ""); err != nil {
		return path, err
	}
	if path, err := p.KernelCosts.validate(); err != nil {
		return path, err
	}
	return p.EngineCosts.validate()
}

// validate checks what figures mean together.
func (p *KernelCosts) validate() (path string, err error) {
	if path, err := p.checkShapes(); err != nil {
		return path, err
	}
	for _, t := range []struct {
		name string
		rows []TokenRow
	}{{"linears", p.Linears}, {"pointwise", p.Pointwise}} {
		if path, err := p.checkTokenRows(t.name, t.rows); err != nil {
			return path, err
		}
	}
	if path, err := p.checkGain(); err != nil {
		return path, err
	}
	if path, err := p.checkTogether(); err != nil {
		return path, err
	}
	return p.checkCurves()
}

// checkTogether wants optional figures that mean nothing alone to come in
// pairs, or with what they add to.
func (p *KernelCosts) checkTogether() (string, error) {
	type pair struct {
		path, other string
		a, b        Figure
	}
	pairs := []pair{
		{"paged_prefill.rows", "ctas", p.Paged.Rows, p.Paged.CTAs},
		{"clock.gemm_steady_ratio", "power_filter", p.Clock.GEMMSteadyRatio, p.Clock.PowerFilter},
		{"clock.gemm_steady_ratio", "frequency_slew", p.Clock.GEMMSteadyRatio, p.Clock.FrequencySlew},
		{"clock.gemm_steady_ratio", "copy_power", p.Clock.GEMMSteadyRatio, p.Clock.CopyPower},
		{"block_close.rate", "launch", p.BlockClose.Rate, p.BlockClose.Launch},
		{"psa_decode.rate", "launch", p.PSADecode.Rate, p.PSADecode.Launch},
		{"psa_decode.rate", "round", p.PSADecode.Rate, p.PSADecode.Round},
		{"load.memcpy_warmup", "memcpy_warmup_blocks", p.Load.MemcpyWarmup, p.Load.MemcpyWarmupBlocks},
	}
	for _, s := range []struct {
		name string
		Stream
	}{{"dense_decode", p.DenseDecode}, {"sparse_decode", p.SparseDecode}, {"scoring", p.Scoring}} {
		if s.Unclustered.Set() || s.Search.Set() { // CTAs say which lists are a crowd
			pairs = append(pairs, pair{s.name + ".search", "unclustered", s.Search, s.Unclustered}, pair{s.name + ".unclustered", "ctas", s.Unclustered, s.CTAs})
		} else if !s.Wave.Set() { // else CTAs say what waves there are
			pairs = append(pairs, pair{s.name + ".merge", "ctas", s.Merge, s.CTAs})
		} else if !s.CTAs.Set() {
			return s.name + ".wave", fmt.Errorf("means nothing without %s.ctas", s.name)
		}
	}
	for _, c := range pairs {
		if c.a.Set() != c.b.Set() {
			return c.path, fmt.Errorf("want it together with %s, or neither; a profile of an earlier build is fitted anew from its samples (calibrate --refit)", c.other)
		}
	}
	return "", nil
}

// checkGaps wants each kind of layer once.
func checkGaps(rows []OverheadRow) (string, error) {
	for i, r := range rows {
		path := fmt.Sprintf("layer_overhead[%d]", i)
		switch {
		case r.Attention != OverheadDense && r.Attention != OverheadSparse && r.Attention != OverheadPSA:
			return path + ".attention", fmt.Errorf("want %s, %s or %s, got %q", OverheadDense, OverheadSparse, OverheadPSA, r.Attention)
		case r.Lookup != "" && r.Lookup != OverheadGPULookup:
			return path + ".lookup", fmt.Errorf("want %s, or nothing, got %q", OverheadGPULookup, r.Lookup)
		case r.Lookup != "" && r.Attention != OverheadSparse && r.Attention != OverheadPSA:
			return path + ".lookup", fmt.Errorf("means nothing for %s", r.Attention)
		}
		for _, before := range rows[:i] {
			if before.Attention == r.Attention && before.Lookup == r.Lookup {
				return path + ".attention", fmt.Errorf("want one row a kind of layer, got a second one of %q with lookup %q", r.Attention, r.Lookup)
			}
		}
	}
	return "", nil
}

// checkFigures walks all figures below v.
func checkFigures(v reflect.Value, path, dim string) (string, error) {
	if f, ok := v.Interface().(Figure); ok {
		dim, optional := strings.CutSuffix(dim, ",optional")
		if optional && !f.Set() {
			return "", nil
		}
		if !f.Set() {
			return path, fmt.Errorf("missing figure (%s)", dim)
		}
		if wrong := f.check(dim); wrong != nil {
			return joinPath(path, wrong.field), errors.New(wrong.msg)
		}
		return "", nil
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if where, err := checkFigures(v.Index(i), fmt.Sprintf("%s[%d]", path, i), dim); err != nil {
				return where, err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
			sub := joinPath(path, name)
			if field.Anonymous {
				sub = path
			}
			if where, err := checkFigures(v.Field(i), sub, field.Tag.Get("dim")); err != nil {
				return where, err
			}
		}
	}
	return "", nil
}

func (p *KernelCosts) checkShapes() (string, error) {
	if len(p.Shapes) == 0 {
		return "shapes", errors.New("want at least one shape")
	}
	for i, s := range p.Shapes {
		for _, f := range []struct {
			key   string
			value int
		}{{"hidden", s.Hidden}, {"q_heads", s.QHeads}, {"kv_heads", s.KVHeads}, {"head_dim", s.HeadDim}, {"ffn", s.FFN}} {
			if f.value < 1 || f.value > 1<<22 {
				return fmt.Sprintf("shapes[%d].%s", i, f.key), fmt.Errorf("want 1 to %d, got %d", 1<<22, f.value)
			}
		}
	}
	return "", nil
}

// checkGain wants rows of known shapes, tokens that rise, and shares below 1, where
// there is a clock to gain from.
func (p *KernelCosts) checkGain() (string, error) {
	if p.Clock.GEMMSteadyRatio.Set() != (len(p.Clock.Gain) > 0) {
		return "clock.gain", errors.New("want at least one row and clock.gemm_steady_ratio, or neither")
	}
	if c := &p.Clock; (c.AttentionPower.Set() || c.MemoryBoundPower.Set()) && !c.GEMMSteadyRatio.Set() {
		return "clock.gemm_steady_ratio", errors.New("want it with clock.attention_power and clock.memory_bound_power")
	}
	last := map[string]int{}
	for i, r := range p.Clock.Gain {
		path := fmt.Sprintf("clock.gain[%d]", i)
		if p.shape(r.Shape) == nil {
			return path + ".shape", p.unknownShape(r.Shape)
		}
		if r.Tokens <= last[r.Shape] {
			return path + ".tokens", fmt.Errorf("want tokens that rise from row to row, got %d after %d", r.Tokens, last[r.Shape])
		}
		last[r.Shape] = r.Tokens
	}
	return "", nil
}

func (p *KernelCosts) unknownShape(name string) error {
	known := make([]string, len(p.Shapes))
	for i, s := range p.Shapes {
		known[i] = s.Name
	}
	return unknownName("shape", name, known)
}

// checkTokenRows wants known shapes, and tokens and times that rise.
func (p *KernelCosts) checkTokenRows(name string, rows []TokenRow) (string, error) {
	if len(rows) == 0 {
		return name, errors.New("want at least one row")
	}
	last := map[string]TokenRow{}
	for i, r := range rows {
		path := fmt.Sprintf("%s[%d]", name, i)
		if p.shape(r.Shape) == nil {
			return path + ".shape", p.unknownShape(r.Shape)
		}
		prev := last[r.Shape]
		if r.Tokens <= prev.Tokens {
			return path + ".tokens", fmt.Errorf("want tokens that rise from row to row, got %d after %d", r.Tokens, prev.Tokens)
		}
		if prev.Tokens > 0 && r.SI() < prev.SI() {
			return path + ".value", fmt.Errorf("more tokens never cost less: got %v %s after %v %s", r.Value, r.Unit, prev.Value, prev.Unit)
		}
		last[r.Shape] = r
	}
	return "", nil
}

// checkCurves wants the other tables in order and costs that never fall.
func (p *KernelCosts) checkCurves() (string, error) {
	if len(p.Prefill) == 0 {
		return "prefill_attention", errors.New("want at least one row")
	}
	for i, r := range p.Prefill {
		path := fmt.Sprintf("prefill_attention[%d]", i)
		if r.Query < 1 || i > 0 && r.Query <= p.Prefill[i-1].Query {
			return path + ".query_tokens", fmt.Errorf("want tokens that rise from row to row, got %d", r.Query)
		}
		if i == 0 {
			continue
		}
		prev := p.Prefill[i-1]
		if r.Launch.SI() < prev.Launch.SI() {
			return path + ".launch", errors.New("longer queries never launch faster")
		}
		if r.Rate.SI()/prev.Rate.SI() > 1.001*float64(r.Query)/float64(prev.Query) { // rates are rounded
			return path + ".rate", errors.New("more query tokens never cost less: the rate grows faster than the query")
		}
	}
	if len(p.Load.Flash) == 0 {
		return "load.flash", errors.New("want at least one row")
	}
	for i, r := range p.Load.Flash {
		if !(r.PoolGiB > 0) || math.IsInf(r.PoolGiB, 0) || i > 0 && r.PoolGiB <= p.Load.Flash[i-1].PoolGiB {
			return fmt.Sprintf("load.flash[%d].pool_gib", i), fmt.Errorf("want sizes that rise from row to row, got %v", r.PoolGiB)
		}
	}
	for _, c := range []struct {
		name string
		rows []PoolTime
	}{{"load.memcpy_pools", p.Load.MemcpyPools}, {"save.memcpy_overlapped_pools", p.Save.MemcpyOverlappedPools}} {
		for i, r := range c.rows {
			if !(r.PoolGiB > 0) || math.IsInf(r.PoolGiB, 0) || i > 0 && r.PoolGiB <= c.rows[i-1].PoolGiB {
				return fmt.Sprintf("%s[%d].pool_gib", c.name, i), fmt.Errorf("want sizes that rise from row to row, got %v", r.PoolGiB)
			}
		}
	}
	if len(p.Save.Scatter) == 0 {
		return "save.scatter", errors.New("want at least one row")
	}
	for i, r := range p.Save.Scatter {
		if r.Threads < 1 || i > 0 && r.Threads <= p.Save.Scatter[i-1].Threads {
			return fmt.Sprintf("save.scatter[%d].threads", i), fmt.Errorf("want threads that rise from row to row, got %d", r.Threads)
		}
	}
	return "", nil
}

// shape returns the named shape or nil.
func (p *KernelCosts) shape(name string) *Shape {
	for i := range p.Shapes {
		if p.Shapes[i].Name == name {
			return &p.Shapes[i]
		}
	}
	return nil
}
