package prefix

import (
	"fmt"
	"iter"
)

// Check verifies a pool against the tables of all requests: a block's references are the tables
// that it is in, one that nobody holds is in the queue, once, and the index has every block with
// content and no other.
func (p *Pool) Check(tables iter.Seq[*Table]) error {
	refs := make([]int32, len(p.refs))
	for t := range tables {
		for _, b := range t.blocks {
			refs[b]++
		}
	}
	idle := 0
	for b, n := range refs {
		if n != p.refs[b] {
			return fmt.Errorf("block %d counts %d references, %d tables have it", b, p.refs[b], n)
		}
		if n == 0 {
			idle++
		}
	}
	if idle != p.free {
		return fmt.Errorf("%d blocks are counted free, nobody holds %d", p.free, idle)
	}
	end := int32(len(p.refs))
	for b := p.next[end]; b != end; b = p.next[b] {
		if idle--; idle < 0 || p.refs[b] != 0 || p.prev[p.next[b]] != b {
			return fmt.Errorf("block %d with %d references is in the queue", b, p.refs[b])
		}
	}
	if idle != 0 {
		return fmt.Errorf("%d blocks that nobody holds are not in the queue", idle)
	}
	keyed := 0
	for b, key := range p.keys {
		if key == 0 {
			continue
		}
		keyed++
		if found := p.index.find(p.keys, key); found < 0 {
			return fmt.Errorf("block %d is not found by its key", b)
		}
	}
	if keyed != p.index.n {
		return fmt.Errorf("%d blocks have content, the index has %d", keyed, p.index.n)
	}
	return nil
}
