package emulator

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// pagedCache is a pool of KV blocks and the paging of each unit: Pool is [slots][K,
// V][BlockTokens][Dim], Table [units][TableStride] maps a logical block to its slot, Context
// [batch] is each request's length in tokens.
type pagedCache struct {
	BlockTokens int
	Pool        []float64
	Table       []int32
	TableStride int
	Context     []int32
}

// Blocks returns the number of logical blocks of a request, the open one included.
func (c *pagedCache) Blocks(request int) int {
	return (int(c.Context[request]) + c.BlockTokens - 1) / c.BlockTokens
}

// block returns the keys and values of a unit's logical block, each [tokens][dim].
func (c *pagedCache) block(s reference.Shape, unit int, block int32) (keys, values []float64) {
	slot := int(c.Table[unit*c.TableStride+int(block)])
	size := c.BlockTokens * s.Dim
	tokens := min(c.BlockTokens, int(c.Context[unit/s.HeadsKV])-int(block)*c.BlockTokens)
	keys = c.Pool[slot*2*size:]
	return keys[:tokens*s.Dim], keys[size:][:tokens*s.Dim]
}

// naiveDecode attends one query token per request to blocks of its context. With List nil it
// attends to every block; otherwise unit u attends to the Count[u] logical blocks
// List[u*ListStride:].
type naiveDecode struct {
	reference.Shape
	pagedCache
	Q          []float64 // [batch][heads q][dim]
	List       []int32
	ListStride int
	Count      []int32
	Scale      float64
}

// Run returns out [batch][heads q][dim] and lse [batch][heads q].
func (d *naiveDecode) Run() (out, lse []float64) {
	out = make([]float64, d.Batch*d.HeadsQ*d.Dim)
	lse = make([]float64, d.Batch*d.HeadsQ)
	for unit := range d.Units() {
		blocks := d.blocks(unit)
		for g := range d.Group() {
			head := unit*d.Group() + g
			state := reference.NewSoftmax(d.Dim)
			for _, block := range blocks {
				keys, values := d.block(d.Shape, unit, block)
				state.Attend(d.Q[head*d.Dim:(head+1)*d.Dim], keys, values, d.Scale)
			}
			lse[head] = state.Result(out[head*d.Dim : (head+1)*d.Dim])
		}
	}
	return out, lse
}

func (d *naiveDecode) blocks(unit int) []int32 {
	if d.List != nil {
		return d.List[unit*d.ListStride:][:d.Count[unit]]
	}
	all := make([]int32, d.Blocks(unit/d.HeadsKV))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// naivePSA is Algorithm 1 of "Progressive Sparse Attention", for a batch and with microbatches:
// unit u attends to its Count[u] blocks in the order Order[u*OrderStride:], Micro at a time, and
// stops once every query head of its group has more than Epsilon of the estimated weight.
type naivePSA struct {
	reference.Shape
	pagedCache
	Q           []float64
	Order       []int32
	OrderStride int
	Count       []int32
	Micro       int
	Scale       float64
	Epsilon     float64
}

// psaResult is the result of a run. Margin[u] is the minimum distance of any P_acc from Epsilon in
// unit u. If it is below the rounding of a lower-precision implementation, that implementation may
// stop elsewhere.
type psaResult struct {
	Out    []float64 // [batch][heads q][dim]
	Used   []int32   // [units] blocks attended to
	Margin []float64
}

// Run runs the algorithm.
func (p *naivePSA) Run() psaResult {
	r := psaResult{
		Out:    make([]float64, p.Batch*p.HeadsQ*p.Dim),
		Used:   make([]int32, p.Units()),
		Margin: make([]float64, p.Units()),
	}
	for unit := range p.Units() {
		r.Used[unit], r.Margin[unit] = p.unit(unit, r.Out[unit*p.Group()*p.Dim:])
	}
	return r
}

func (p *naivePSA) unit(unit int, out []float64) (used int32, margin float64) {
	progress, rows := reference.NewProgress(p.Group(), p.Dim), p.Group()*p.Dim
	margin = math.Inf(1)
	blocks := p.Order[unit*p.OrderStride:][:p.Count[unit]]
	for done := false; !done && int(used) < len(blocks); {
		for _, block := range blocks[used:min(int(used)+p.Micro, len(blocks))] {
			keys, values := p.block(p.Shape, unit, block)
			progress.Add(p.Q[unit*rows:][:rows], keys, values, p.Scale)
			used++
		}
		var least float64
		done, least = progress.Enough(len(blocks)-int(used), p.Epsilon)
		margin = math.Min(margin, least)
	}
	progress.Result(out)
	return used, margin
}
