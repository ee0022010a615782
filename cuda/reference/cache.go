package reference

// Shape is the head layout of a batch: query head h belongs to KV head h / Group.
type Shape struct {
	Batch, HeadsQ, HeadsKV, Dim int
}

// Group returns the query heads of one KV head.
func (s Shape) Group() int { return s.HeadsQ / s.HeadsKV }

// Units returns the number of (request, KV head) pairs.
func (s Shape) Units() int { return s.Batch * s.HeadsKV }

// Cache is a pool of KV blocks and the paging of each unit: Pool is [slots][K,
// V][BlockTokens][Dim], Table [units][TableStride] maps a logical block to its slot, Context
// [batch] is each request's length in tokens.
type Cache struct {
	BlockTokens int
	Pool        []float64
	Table       []int32
	TableStride int
	Context     []int32
}

// Blocks returns the number of logical blocks of a request, the open one included.
func (c *Cache) Blocks(request int) int {
	return (int(c.Context[request]) + c.BlockTokens - 1) / c.BlockTokens
}

// block returns the keys and values of a unit's logical block, each [tokens][dim].
func (c *Cache) block(s Shape, unit int, block int32) (keys, values []float64) {
	slot := int(c.Table[unit*c.TableStride+int(block)])
	size := c.BlockTokens * s.Dim
	tokens := min(c.BlockTokens, int(c.Context[unit/s.HeadsKV])-int(block)*c.BlockTokens)
	keys = c.Pool[slot*2*size:]
	return keys[:tokens*s.Dim], keys[size:][:tokens*s.Dim]
}
