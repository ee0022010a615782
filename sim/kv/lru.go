package kv

// lru evicts the block whose last use lies furthest back. Use is counted by
// (step, layer): all heads of a batch read a layer's blocks in one kernel, so
// they are used at one time.
//
// It keeps no list. A hit would have to move its block in one, and hits are
// nearly all there is; instead a block's mark holds the step of its last use,
// and when victims are needed a scan over all marks collects the oldest idle
// blocks, a share of the pool, in order. They are handed out until they run
// out. A block used in between is no longer idle with the stamp it was
// collected with, and is passed over; every block not collected is younger
// than all collected. So the order is exact, and its cost falls on evictions.
type lru struct {
	pool     int
	victims  []ref
	next     int
	from, to int               // sampled layers to scan
	unused   int               // idle blocks that no decode step selected
	count    [maxAge + 1]int32 // idle blocks by age in steps
	start    [maxAge + 1]int32
}

// maxAge is the age, in steps, from which on blocks count as equally old. A
// block must stay idle for this many steps of a full pool to get there.
const maxAge = 1 << 15

func newLRU(pool int) *lru { return &lru{pool: pool} }

func (l *lru) entered(ref) {}

func (l *lru) tidy(*Cache, int) {}

func (l *lru) victim(c *Cache, layer int) (ref, bool) {
	for {
		for l.next < len(l.victims) {
			r := l.victims[l.next]
			l.next++
			if m := c.at(r); m != nil && m.idle() && m.when() == r.stamp {
				return r, true
			}
		}
		if !l.scan(c, layer) {
			return ref{}, false
		}
	}
}

// scan collects the oldest idle blocks of the pool, or of one sampled layer,
// and reports whether there are any.
func (l *lru) scan(c *Cache, layer int) bool {
	if c.pools[l.pool].idle == 0 {
		return false
	}
	l.from, l.to = 0, len(c.layers)
	if layer >= 0 {
		l.from, l.to = layer, layer+1
	}
	oldest := l.countAges(c)
	if oldest < 0 {
		return false
	}
	want := int32(max(256, c.pools[l.pool].slots/4))
	total, youngest := int32(0), oldest
	for ; youngest >= 0; youngest-- {
		l.start[youngest] = total
		if total += l.count[youngest]; total >= want {
			break
		}
	}
	youngest = max(youngest, 0)
	if cap(l.victims) < int(total) {
		l.victims = make([]ref, total, 2*total)
	}
	l.victims, l.next = l.victims[:total], 0
	l.collect(c, youngest)
	clear(l.count[:oldest+1])
	return true
}

// countAges counts idle blocks by age and returns the oldest, -1 for none.
func (l *lru) countAges(c *Cache) int {
	oldest := -1
	l.unused = 0
	l.each(c, func(s *Seq, g int) {
		for _, m := range s.row(g)[:s.blocks] {
			if m.idle() {
				if m.when() < s.born {
					l.unused++
				}
				age := s.age(c.step, m)
				l.count[age]++
				oldest = max(oldest, age)
			}
		}
	})
	return oldest
}

// collect writes the idle blocks of at least the given age to victims, oldest
// first. Blocks of one age are of one step; those never selected count as used
// at its beginning, the others in the order of layers, which each keeps.
func (l *lru) collect(c *Cache, youngest int) {
	for _, selected := range [...]bool{false, true} {
		if !selected && l.unused == 0 {
			continue
		}
		l.each(c, func(s *Seq, g int) {
			for b, m := range s.row(g)[:s.blocks] {
				if !m.idle() || m.when() >= s.born != selected {
					continue
				}
				if age := s.age(c.step, m); age >= youngest {
					l.victims[l.start[age]] = ref{s.id, m.when(), uint16(g), uint16(b)}
					l.start[age]++
				}
			}
		})
	}
}

// each visits the rows of the pool's groups, layer by layer.
func (l *lru) each(c *Cache, visit func(s *Seq, g int)) {
	for i := l.from; i < l.to; i++ {
		if c.layers[i].pool != l.pool {
			continue
		}
		for _, s := range c.seqs {
			if !s.live {
				continue
			}
			for g := c.layers[i].from; g < c.layers[i].to; g++ {
				visit(s, g)
			}
		}
	}
}

// age returns how many steps ago a block was last used.
func (s *Seq) age(now uint32, m mark) int {
	at := s.released
	if w := m.when(); w >= s.born {
		at = s.clock[w-s.born-1]
	}
	return int(min(now-at, maxAge))
}
