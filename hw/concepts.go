package hw

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Part is a part of the cost model that can be taken out, and the keys of a profile that
// hold its figures.
type Part struct {
	Concept string // one of the cost model's few
	Name    string
	Keys    []string
}

// parts lists all of the cost model but the card's peaks, its links' nominal speed and the
// reference decode.
var parts = []Part{
	{"gemm", "linears", []string{"linears"}},
	{"gemm", "linear_grid", []string{"linear_grid"}},
	{"gemm", "head", []string{"head"}},
	{"elementwise", "pointwise", []string{"pointwise"}},
	{"elementwise", "embedding", []string{"embedding.launch", "embedding.rate"}},
	{"prefill attention", "prefill", []string{"prefill_attention"}},
	{"prefill attention", "paged_prefill", []string{"paged_prefill.rows", "paged_prefill.ctas"}},
	{"memory-bound kernels", "dense_decode", []string{"dense_decode.launch", "dense_decode.floor", "dense_decode.rate", "dense_decode.merge", "dense_decode.ctas", "dense_decode.cut", "dense_decode.join", "dense_decode.wave", "dense_decode.full", "dense_decode.tail", "dense_decode.piece", "dense_decode.pages", "dense_decode.at_once", "dense_decode.long", "dense_decode.room", "dense_decode.crowd", "dense_decode.per_query", "dense_decode.per_head", "dense_decode.per_long"}},
	{"memory-bound kernels", "sparse_decode", []string{"sparse_decode.launch", "sparse_decode.floor", "sparse_decode.rate", "sparse_decode.merge", "sparse_decode.ctas", "sparse_decode.cut", "sparse_decode.join", "sparse_decode.wave", "sparse_decode.full", "sparse_decode.tail", "sparse_decode.piece", "sparse_decode.pages", "sparse_decode.at_once", "sparse_decode.long", "sparse_decode.room", "sparse_decode.crowd", "sparse_decode.per_query", "sparse_decode.per_head", "sparse_decode.per_long"}},
	{"memory-bound kernels", "scoring", []string{"scoring.launch", "scoring.floor", "scoring.rate", "scoring.merge", "scoring.ctas", "scoring.cut", "scoring.join", "scoring.wave", "scoring.full", "scoring.tail", "scoring.piece", "scoring.pages", "scoring.at_once", "scoring.long", "scoring.room", "scoring.crowd", "scoring.per_query", "scoring.per_head", "scoring.per_long"}},
	{"memory-bound kernels", "dense_cut", []string{"dense_decode.tail", "dense_decode.piece", "dense_decode.pages"}},
	{"memory-bound kernels", "sparse_waves", []string{"sparse_decode.cut", "sparse_decode.join", "sparse_decode.wave", "sparse_decode.full"}},
	{"memory-bound kernels", "scoring_lists", []string{"scoring.at_once", "scoring.long", "scoring.room", "scoring.crowd", "scoring.per_query", "scoring.per_head", "scoring.per_long"}},
	{"progressive attention", "psa_decode", []string{"psa_decode.launch", "psa_decode.per_head", "psa_decode.round", "psa_decode.per_block", "psa_decode.relaunch", "psa_decode.rate", "psa_decode.alone", "psa_decode.few"}},
	{"progressive attention", "psa_few", []string{"psa_decode.few"}},
	{"progressive attention", "psa_uneven", []string{"psa_decode.alone", "psa_decode.few.alone", "psa_decode.few.full"}},
	{"block close", "digest", []string{"digest.launch", "digest.rate"}},
	{"block close", "save_ring", []string{"save.ring_launch", "save.ring_rate"}},
	{"clock", "clock", []string{"clock.gain", "clock.alone", "clock.meter", "clock.pace", "clock.attention", "clock.copies", "clock.idle", "clock.dense", "clock.linears", "clock.decode"}},
	{"clock", "clock_idle", []string{"clock.idle"}},
	{"clock", "clock_memory", []string{"clock.dense", "clock.linears"}},
	{"clock", "clock_attention", []string{"clock.attention"}},
	{"clock", "clock_decode", []string{"clock.decode"}},
	{"layer gap", "gaps", []string{"gaps"}},
	{"link", "load_memcpy", []string{"load.memcpy_call", "load.memcpy_base", "load.memcpy_early", "load.memcpy_first", "load.memcpy_start", "load.memcpy_whole", "load.memcpy_pools"}},
	{"link", "load_memcpy_pools", []string{"load.memcpy_pools"}},
	{"link", "load_memcpy_early", []string{"load.memcpy_early", "load.memcpy_first"}},
	{"link", "load_memcpy_large", []string{"load.memcpy_start", "load.memcpy_whole"}},
	{"link", "load_batched", []string{"load.batched_call", "load.batched_block", "load.batched_early", "load.batched_first", "load.batched_sizes"}},
	{"link", "load_flash", []string{"load.flash_launch", "load.flash_floor", "load.flash_block", "load.flash_queued", "load.flash_idle", "load.flash_beside_psa", "load.flash"}},
	{"link", "flash_queued", []string{"load.flash_queued", "load.flash_idle"}},
	{"link", "flash_beside_psa", []string{"load.flash_beside_psa"}},
	{"link", "save_memcpy", []string{"save.memcpy_call", "save.memcpy_base", "save.memcpy_long", "save.memcpy_half", "save.memcpy_start", "save.memcpy_whole", "save.memcpy_pools", "save.memcpy_beside_pools"}},
	{"link", "save_memcpy_long", []string{"save.memcpy_long", "save.memcpy_half"}},
	{"link", "save_memcpy_pools", []string{"save.memcpy_pools"}},
	{"link", "save_memcpy_beside", []string{"save.memcpy_beside_pools"}},
	{"link", "save_gpu", []string{"save.gpu_launch", "save.gpu_floor", "save.gpu_block", "save.gpu_rate", "save.contention"}},
	{"link", "save_flash", []string{"save.flash_call", "save.flash_wake", "save.flash_join", "save.flash_block", "save.flash_chunk", "save.flash_near", "save.scatter"}},
	{"link", "save_flash_parts", []string{"save.flash_wake", "save.flash_join", "save.flash_block", "save.flash_chunk", "save.flash_near"}},
	{"link", "link_rates", []string{"link.h2d", "link.d2h", "link.duplex_copy", "link.duplex_kernel", "link.duplex_gather"}},
	{"link", "duplex_gather", []string{"link.duplex_gather"}},
	{"host step", "step", []string{"host.step", "host.request", "host.sparse_layer"}},
	{"host step", "freed_block", []string{"host.freed_block"}},
	{"layer round trip", "round_trip", []string{"host.layer_sync", "host.layer_rate", "host.layer_request", "host.psa_layer", "host.psa_request", "host.psa_rate", "host.turns", "host.psa_turns", "host.whole_list", "host.cpu_layer", "host.cpu_request", "host.cpu_rate", "host.cpu_load", "host.cpu_psa_layer", "host.cpu_psa_request", "host.cpu_psa_rate", "host.cpu_psa_load"}},
	{"layer round trip", "turns", []string{"host.turns", "host.psa_turns"}},
	{"layer round trip", "psa_round_trip", []string{"host.psa_turns", "host.psa_layer", "host.psa_request", "host.psa_rate"}},
	{"layer round trip", "whole_list", []string{"host.whole_list"}},
	{"layer round trip", "host_loads", []string{"host.load", "host.loads", "host.loads_half"}},
	{"layer round trip", "list_copy", []string{"host.list_copy", "host.list_rate"}},
	{"layer round trip", "kv_write", []string{"host.kv_write"}},
	{"layer round trip", "lookup_misses", []string{"host.lookup_miss", "host.lookup_block"}},
	{"layer round trip", "lookup_lists", []string{"host.lookup_rate", "host.lookup_miss", "host.lookup_block"}},
	{"PSA verdict", "verdict", []string{"host.verdict", "host.submit", "host.psa_launch_calls"}},
	{"PSA verdict", "psa_launch_calls", []string{"host.psa_launch_calls"}},
	{"driver contention", "driver_contention", []string{"host.call_wait", "host.load_wait", "host.copy_wait", "host.turn_wait"}},
	{"driver contention", "load_wait", []string{"host.load_wait"}},
	{"driver contention", "turn_wait", []string{"host.turn_wait"}},
}

// Parts lists what of the cost model Without takes out.
func Parts() []Part {
	var out []Part
	for _, p := range parts {
		out = append(out, Part{p.Concept, p.Name, slices.Clone(p.Keys)})
	}
	return out
}

// Without returns the profile without a part of the cost model, by its name, or without
// all parts of a concept. What may be left out of a profile is; a time that may not costs
// nothing, and a rate does not bind: the card's peaks still do.
func (p *Profile) Without(name string) (*Profile, error) {
	out, err := p.clone()
	if err != nil {
		return nil, err
	}
	found := false
	for _, part := range parts {
		if part.Name != name && part.Concept != name {
			continue
		}
		found = true
		for _, key := range part.Keys {
			removeKey(reflect.ValueOf(out).Elem(), strings.Split(key, "."))
		}
	}
	if !found {
		return nil, fmt.Errorf("no part of the cost model is called %q; known: %s", name, strings.Join(partNames(), ", "))
	}
	return out, nil
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names
}

// clone is a copy that shares nothing.
func (p *Profile) clone() (*Profile, error) {
	text, err := p.Encode()
	if err != nil {
		return nil, err
	}
	return ParseProfile(p.Name+".toml", text)
}

// removeKey takes the figure, rows or table of a key out of a struct.
func removeKey(v reflect.Value, path []string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if name != path[0] {
			continue
		}
		if len(path) > 1 {
			removeKey(v.Field(i), path[1:])
		} else {
			neutral(v.Field(i), field.Tag)
		}
		return
	}
	panic("hw: no key " + strings.Join(path, ".") + " in a profile")
}

// Of what may not be left out: a time, and a rate beyond any card's.
const (
	noTime  = 1e-15 // seconds
	anyRate = 1e21  // bytes/s, FLOP/s
)

// neutral empties what a tag calls optional, and lets anything else cost nothing.
func neutral(v reflect.Value, tag reflect.StructTag) {
	if strings.Contains(tag.Get("toml"), "omitempty") || strings.Contains(tag.Get("dim"), "optional") {
		v.SetZero()
		return
	}
	if f, ok := v.Addr().Interface().(*Figure); ok {
		switch dim, _, _ := strings.Cut(tag.Get("dim"), ","); dim {
		case "time":
			f.Value, f.Unit = noTime, "s"
		case "rate":
			f.Value, f.Unit = anyRate*1e-12, "TB/s"
		case "compute":
			f.Value, f.Unit = anyRate*1e-15, "PFLOP/s"
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
