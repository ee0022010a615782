package kv

// lru evicts the least recently used block. Recency is by (step, layer), because all heads of a
// batch read a layer's blocks in one kernel.
//
// It keeps no list, because every hit would have to update it. A mark holds the step of the
// last use. If victims are needed, a scan over all marks collects the oldest idle blocks in
// order, up to a share of the pool. A block used before its turn has a different stamp and is
// skipped. Every block not collected is younger. So the order is exact, and the cost arises
// only with evictions. One exception may wait for the next scan: a block that was held but not
// in use during the scan, because its layer was parked, in a pool full of blocks in use.
type lru struct {
	pool    int
	victims []ref
	next    int
	idle    []idleBlock
	// idle blocks by whether a decode step of their request has selected them (0 no, 1 yes) and by
	// age in steps, then positions among the victims
	count [2][maxAge + 1]int32
}

type idleBlock struct {
	ref
	selected, age uint16
}

// maxAge is the largest age, in steps, that is distinguished.
const maxAge = 1 << 15

func newLRU(pool int) *lru { return &lru{pool: pool} }

func (l *lru) entered(*Cache, ref) {}

func (l *lru) tidy(*Cache, int) {}

func (l *lru) victim(c *Cache, only *Layer) (ref, bool) {
	for {
		for l.next < len(l.victims) {
			r := l.victims[l.next]
			l.next++
			if l.evictable(c, r) {
				return r, true
			}
		}
		if !l.scan(c, only) {
			return ref{}, false
		}
	}
}

// evictable reports whether a collected block is still idle and was not used.
func (l *lru) evictable(c *Cache, r ref) bool {
	m := c.at(r)
	if m == nil || !m.idle() || m.when() != r.stamp {
		return false // deferred changes would not make it evictable
	}
	c.seqs[r.seq].sync(int(r.group))
	return m.idle() && m.when() == r.stamp
}

// scan collects the oldest idle blocks of the pool, or of one layer if given, and reports
// whether there are any.
func (l *lru) scan(c *Cache, only *Layer) bool {
	if c.pools[l.pool].idle == 0 {
		return false
	}
	layers := c.layers
	if only != nil {
		layers = layers[only.index : only.index+1]
	}
	oldest := l.countAges(c, layers)
	if oldest < 0 {
		return false
	}
	youngest := l.arrange(c, oldest)
	for i := range l.idle {
		if r := &l.idle[i]; int(r.age) >= youngest {
			at := &l.count[r.selected][r.age]
			l.victims[*at] = r.ref
			*at++
		}
	}
	for i := range l.count {
		clear(l.count[i][:oldest+1])
	}
	return true
}

// countAges collects and counts the idle blocks of layers and returns the oldest age, -1 without
// idle blocks.
func (l *lru) countAges(c *Cache, layers []*Layer) (oldest int) {
	oldest, l.idle = -1, l.idle[:0]
	for _, layer := range layers {
		if layer.pool != l.pool {
			continue
		}
		for _, s := range c.seqs {
			if !s.live {
				continue
			}
			for g := layer.From; g < layer.To; g++ {
				s.sync(g)
				for b, m := range s.row(g)[:s.blocks] {
					if m.idle() {
						age, selected := s.age(c.step, m), s.selected(m)
						l.idle = append(l.idle, idleBlock{ref{s.id, m.when(), uint16(g), uint16(b)},
							uint16(selected), uint16(age)})
						l.count[selected][age]++
						oldest = max(oldest, age)
					}
				}
			}
		}
	}
	return oldest
}

// arrange converts counts to positions, the oldest blocks first, until there are enough
// victims. It returns the age of the youngest victim. Within one step, blocks never selected
// come first; the others are in layer order.
func (l *lru) arrange(c *Cache, oldest int) (youngest int) {
	want := int32(max(256, c.pools[l.pool].slots/4))
	total := int32(0)
	for youngest = oldest; youngest >= 0; youngest-- {
		for selected := range 2 {
			n := &l.count[selected][youngest]
			*n, total = total, total+*n
		}
		if total >= want {
			break
		}
	}
	if cap(l.victims) < int(total) {
		l.victims = make([]ref, total, 2*total)
	}
	l.victims, l.next = l.victims[:total], 0
	return max(youngest, 0)
}

// selected is 1 if a decode step of this owner has selected the block, else 0.
func (s *Seq) selected(m mark) int {
	if m.when() < s.born {
		return 0
	}
	return 1
}

// age returns the number of steps since a block's last use, at most maxAge.
func (s *Seq) age(now uint32, m mark) int {
	at := s.released
	if w := m.when(); w >= s.born {
		at = s.stepAt[w-s.born-1]
	}
	return int(min(now-at, maxAge))
}
