package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// patterns is sparse prefill: the attention pattern of each query head, and the memory in which its
// indices are built. Without layers prefill is dense.
type patterns struct {
	layers                   [][]section
	verticals, slashes, best int // largest sizes
	memory                   indexMemory
	drawn                    map[pattern.Head]drawn // nil: indices find the lines
}

// headRun is query heads [from, to) with one pattern.
type headRun struct {
	from, to int
	pattern.Head
}

// section is a sequence of adjacent heads that attend by lists, or a run of heads without lists.
type section struct {
	from, to int
	runs     []headRun
}

func (s *section) listed() bool { return s.runs[0].Kind.Indexed() }

// newPatterns divides the heads of each layer into sections.
func newPatterns(layers [][]pattern.Head) patterns {
	p := patterns{layers: make([][]section, len(layers))}
	for layer, heads := range layers {
		for i, h := range heads {
			p.add(layer, headRun{i, i + 1, h})
		}
	}
	return p
}

// add appends a head to a layer.
func (p *patterns) add(layer int, h headRun) {
	switch h.Kind {
	case pattern.VerticalSlash:
		p.verticals, p.slashes = max(p.verticals, h.A), max(p.slashes, h.B)
	case pattern.BlockSparse:
		p.best = max(p.best, h.A)
	}
	all := p.layers[layer]
	if n := len(all); n > 0 {
		s := &all[n-1]
		last := &s.runs[len(s.runs)-1]
		switch {
		case last.Head == h.Head:
			last.to, s.to = h.to, h.to
			return
		case s.listed() && h.Kind.Indexed():
			s.runs, s.to = append(s.runs, h), h.to
			return
		}
	}
	p.layers[layer] = append(all, section{h.from, h.to, []headRun{h}})
}

// launches divides query heads [from, to) into parts that one launch supports: each part has either
// whole groups of query heads that share a KV head, or heads of one group. A part has at most the
// given heads.
func launches(from, to, group, most int) (parts [][2]int) {
	for from < to {
		n := min(to-from, most)
		if from%group == 0 && n >= group {
			n = n / group * group
		} else {
			n = min(n, group-from%group)
		}
		parts = append(parts, [2]int{from, from + n})
		from += n
	}
	return parts
}

// headsOf returns the attention of a part of the query heads.
func headsOf(a cuda.PrefillArgs, part [2]int) cuda.PrefillArgs {
	group := int(a.HeadsQ / a.HeadsKV)
	move := func(p *cuda.Ptr, heads int, stride int64) { *p += cuda.Ptr(2 * int64(heads) * stride) }
	move(&a.Q, part[0], a.QHeadStride)
	move(&a.Out, part[0], a.OutHeadStride)
	move(&a.K, part[0]/group, a.KHeadStride)
	move(&a.V, part[0]/group, a.VHeadStride)
	a.HeadsQ = int32(part[1] - part[0])
	a.HeadsKV = max(1, a.HeadsQ/int32(group))
	return a
}

// PatternKinds are the kinds of heads that the kernels support.
var PatternKinds = []pattern.Kind{pattern.AShape, pattern.VerticalSlash, pattern.BlockSparse}

// supportsPatterns returns an error for patterns that the kernels of sparse prefill do not support.
func (c *Config) supportsPatterns(m cuda.Machine) error {
	if len(c.Patterns) == 0 {
		return nil
	}
	md := c.Weights.Config()
	if md.HeadDim != 128 {
		return fmt.Errorf("live: sparse prefill of heads of %d values; its kernels support 128 "+
			"(prefill.attention)", md.HeadDim)
	}
	if len(c.Patterns) != md.Layers {
		return fmt.Errorf("live: patterns of %d layers, the model has %d", len(c.Patterns), md.Layers)
	}
	info, err := m.Device()
	if err != nil {
		return err
	}
	for layer, heads := range c.Patterns {
		if len(heads) != md.QHeads {
			return fmt.Errorf("live: layer %d: patterns of %d heads, the model has %d query heads",
				layer, len(heads), md.QHeads)
		}
		for i, h := range heads {
			if err := c.supportsHead(h, int(info.SharedBytes)); err != nil {
				return fmt.Errorf("live: layer %d, head %d: %w (prefill.attention)", layer, i,
					err)
			}
		}
	}
	return nil
}

// supportsHead checks that the shared memory of a CTA holds the lines of a head.
func (c *Config) supportsHead(h pattern.Head, shared int) error {
	switch h.Kind {
	case pattern.AShape:
	case pattern.VerticalSlash:
		if n := min(h.B, c.Longest); shared > 0 && 4*n > shared {
			return fmt.Errorf("%v: %d slash lines; the kernel holds %d on this GPU", h, n, shared/4)
		}
	case pattern.BlockSparse:
		if h.A > cuda.TopKMax {
			return fmt.Errorf("%v: the kernel chooses at most %d blocks", h, cuda.TopKMax)
		}
	default:
		return fmt.Errorf("%v has no kernel; %s have", h, PatternKinds)
	}
	return nil
}
