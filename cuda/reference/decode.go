package reference

// Decode attends one query token per request to blocks of its context. With List nil it attends to
// every block; otherwise unit u attends to the Count[u] logical blocks List[u*ListStride:].
type Decode struct {
	Shape
	Cache
	Q          []float64 // [batch][heads q][dim]
	List       []int32
	ListStride int
	Count      []int32
	Scale      float64
}

// Run returns out [batch][heads q][dim] and lse [batch][heads q].
func (d *Decode) Run() (out, lse []float64) {
	out = make([]float64, d.Batch*d.HeadsQ*d.Dim)
	lse = make([]float64, d.Batch*d.HeadsQ)
	for unit := range d.Units() {
		blocks := d.blocks(unit)
		for g := range d.Group() {
			head := unit*d.Group() + g
			state := NewSoftmax(d.Dim)
			for _, block := range blocks {
				keys, values := d.block(d.Shape, unit, block)
				state.Attend(d.Q[head*d.Dim:(head+1)*d.Dim], keys, values, d.Scale)
			}
			lse[head] = state.Result(out[head*d.Dim : (head+1)*d.Dim])
		}
	}
	return out, lse
}

func (d *Decode) blocks(unit int) []int32 {
	if d.List != nil {
		return d.List[unit*d.ListStride:][:d.Count[unit]]
	}
	all := make([]int32, d.Blocks(unit/d.HeadsKV))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
