package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whoever decodes, pauses, ends and grows, a step reads again what a recount of its tables' first
// blocks finds more than once.
func TestRereadIsARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		var r readers
		tables, had := make([]Grant, 5), make([]int, 5) // blocks when first read; 0: not read
		own := int32(100)
		for range n("steps", 1, 40) {
			uses := map[int32]int64{}
			var reads []int
			for i := range tables {
				table := &tables[i]
				switch n("what", 0, 5) {
				case 0:
					r.end(table)
					table.blocks, had[i] = table.blocks[:0], 0
				case 1: // an output of its own
					if len(table.blocks) > 0 {
						table.blocks, own = append(table.blocks, own), own+1
					}
				case 2, 3, 4:
					if len(table.blocks) == 0 {
						prefix := n("prefix", 0, 3) * 10 // one of a few, from its first block on
						for b := range n("blocks", 1, 6) {
							table.blocks = append(table.blocks, int32(prefix+b))
						}
					}
					reads = append(reads, i)
				}
			}
			for _, i := range reads {
				if had[i] == 0 {
					had[i] = len(tables[i].blocks)
				}
				r.Read(&tables[i])
				for _, b := range tables[i].blocks[:had[i]] {
					uses[b]++
				}
			}
			if len(reads) > 0 {
				for i := range tables {
					if !slices.Contains(reads, i) {
						had[i] = 0
					}
				}
			}
			want := int64(0)
			for _, tables := range uses {
				want += tables - 1
			}
			if got := r.Reread(); len(reads) > 0 && got != want || len(reads) == 0 && got != 0 {
				t.Fatalf("%d blocks are read again, want %d", got, want)
			}
		}
	})
}
