package hw

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/builtin"
)

// Part is a removable part of the cost model, with the keys of a profile that hold its figures.
type Part struct {
	Concept string // one of the cost model's concepts
	Name    string
	Keys    []string
}

// parts lists the cost model without the card's peaks, its links' nominal speed and the reference
// decode.
var parts = []Part{
	{"GEMM", "gemm", []string{"linears", "linear_launch"}},
	// follows the LM head
	{"GEMM", "sampling", []string{"sampling.launch", "sampling.row", "sampling.rate"}},
	{"elementwise", "pointwise", []string{"pointwise"}},
	{"prefill attention", "prefill", []string{"prefill_attention"}},
	{"prefill attention", "paged_prefill",
		[]string{"paged_prefill.rows", "paged_prefill.rate", "paged_prefill.copy"}},
	{"prefill attention", "sparse_prefill", []string{"sparse_prefill"}},
	{"memory-bound kernels", "dense_decode", streamKeys("dense_decode")},
	{"memory-bound kernels", "shared_prefixes", []string{"dense_decode.l2_rate"}},
	{"memory-bound kernels", "sparse_decode", streamKeys("sparse_decode")},
	{"memory-bound kernels", "scoring", streamKeys("scoring")},
	{"progressive attention", "continue_latency", []string{"host.continue_latency"}},
	{"clock", "clock", []string{"clock.gain", "clock.gemm_steady_ratio", "clock.settling"}},
	{"layer overhead", "layer_overhead", []string{"layer_overhead"}},
	{"link", "link_rates", []string{"link.h2d", "link.d2h", "link.duplex_copy", "link.duplex_kernel"}},
	{"GEMM", "grids", []string{"grids"}},
	{"GEMM", "experts", []string{"experts"}},
	{"memory-bound kernels", "selected", []string{"selected"}},
	{"link", "load_memcpy", []string{"load.memcpy_call"}},
	{"link", "load_flash", []string{"load.flash_launch", "load.flash_floor",
		"load.flash"}},
	{"link", "load_delay", []string{"load.layer_delay"}},
	{"link", "load_swap", []string{"load.swap.launch", "load.swap.scan",
		"load.swap.rate", "load.swap.request_rate"}},
	{"link", "save_memcpy", []string{"save.memcpy_call"}},
	{"link", "save_gpu", []string{"save.gpu_launch", "save.gpu_floor",
		"save.gpu_rate", "save.contention"}},
	{"link", "save_flash", []string{"save.flash_call", "save.scatter"}},
	{"host step", "host_step",
		[]string{"host.step", "host.request", "host.token", "host.sparse_layer", "host.eager_layer"}},
	{"layer round trip", "round_trip", []string{"host.layer_sync", "host.layer_rate"}},
}

// streamKeys lists the keys of a memory-bound kernel.
func streamKeys(name string) (keys []string) {
	for _, figure := range []string{"launch", "floor", "rate", "l2_rate", "merge"} {
		keys = append(keys, name+"."+figure)
	}
	return keys
}

// Parts lists the parts that Without can remove.
func Parts() []Part {
	var out []Part
	for _, p := range parts {
		out = append(out, Part{p.Concept, p.Name, slices.Clone(p.Keys)})
	}
	return out
}

// Without returns the profile without the named part of the cost model, or without all parts of a
// concept. Optional figures are removed. A required time becomes free and a required rate does not
// bind; the card's peaks still hold.
func (p *Profile) Without(name string) (*Profile, error) {
	out := builtin.Clone(p)
	found := false
	for _, part := range parts {
		if part.Name != name && part.Concept != name {
			continue
		}
		found = true
		for _, key := range part.Keys {
			if !removeKey(reflect.ValueOf(out).Elem(), strings.Split(key, ".")) {
				panic("hw: no key " + key + " in a profile")
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("no part of the cost model is called %q; known: %s", name,
			strings.Join(partNames(), ", "))
	}
	return out, nil
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names
}

// removeKey removes the figure, rows or table of a key from a struct. It returns false if there is
// none.
func removeKey(v reflect.Value, path []string) bool {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		switch {
		case field.Anonymous && removeKey(v.Field(i), path):
			return true
		case name != path[0]:
		case len(path) > 1:
			return removeKey(v.Field(i), path[1:])
		default:
			neutral(v.Field(i), field.Tag)
			return true
		}
	}
	return false
}

// noTime is the smallest allowed time of a profile, in seconds.
const noTime = 1e-15

// neutral clears a figure that is tagged optional, and makes any other figure free.
func neutral(v reflect.Value, tag reflect.StructTag) {
	if rows, ok := v.Addr().Interface().(*[]OverheadRow); ok { // rows also tell which devices exist
		for i := range *rows {
			(*rows)[i].Value, (*rows)[i].Unit = noTime, "s"
		}
		return
	}
	if rows, ok := v.Addr().Interface().(*[]SparseRow); ok { // without rows, published ones hold
		*rows = freeSparseRows()
		return
	}
	if grids, ok := v.Addr().Interface().(*[]Grid); ok { // several GPUs need their all-reduce
		for i, g := range *grids {
			(*grids)[i].Times = slices.Repeat([]float64{leastGridTime}, len(g.Times))
		}
		return
	}
	if strings.Contains(tag.Get("toml"), "omitempty") || strings.Contains(tag.Get("dim"), "optional") {
		v.SetZero()
		return
	}
	if f, ok := v.Addr().Interface().(*Figure); ok {
		// use the largest rate of any profile
		switch dim, _, _ := strings.Cut(tag.Get("dim"), ","); dim {
		case "time":
			f.Value, f.Unit = noTime, "s"
		case "rate":
			f.Value, f.Unit = largest[dim]*1e-12, "TB/s"
		case "compute":
			f.Value, f.Unit = largest[dim]*1e-15, "PFLOP/s"
		case "share":
			f.Value, f.Unit = 1e-9, "share"
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			neutral(v.Index(i), "")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if k := v.Field(i).Kind(); k == reflect.Struct || k == reflect.Slice {
				neutral(v.Field(i), v.Type().Field(i).Tag)
			}
		}
	}
}
