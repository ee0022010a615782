package kv

import "slices"

// Layer is a model layer with sampled groups.
type Layer struct {
	Number   int // in the model
	From, To int // its groups, as indices into the sample

	index   int    // among the sampled layers
	pool    int    // pool of its groups
	version uint32 // grows when blocks become idle or their scores change
}

// layersOf returns the layers with groups in the sample.
func layersOf(geo Geometry, sample Sample) []*Layer {
	var layers []*Layer
	for i, g := range sample.Groups {
		number := int(g) / geo.KVHeads
		if n := len(layers); n == 0 || layers[n-1].Number != number {
			layers = append(layers, &Layer{Number: number, From: i, index: n})
		}
		layers[len(layers)-1].To = i + 1
	}
	return layers
}

// PartGroups is the largest number of groups in a part of a Split. With few requests parts are
// smaller, so that threads can share the work and take over from a slow thread. Each part costs
// Join a few cache misses.
const (
	PartGroups  = 8
	leastGroups = 2
	fewParts    = 16 // number of parts of a Split above which parts grow
)

// split is the accesses of several requests to one layer, in parts of a few groups. Parts may
// run concurrently; Join merges them in order.
type split struct {
	layer  *Layer
	seqs   []*Seq
	groups int     // per part
	shares []share // by part
	begin  []int   // start in Cache.missing of each part's blocks, until they are copied
}

// Split begins the accesses of distinct requests to a layer and returns the number of parts.
// Call AccessPart for every part, then Join. The result equals serial calls of Access. A
// Selection's At is the position in slots of its blocks' slots (sinks, window, then
// candidates). The cache writes the slots of Added candidates and of blocks that it loads; the
// caller writes the others. slots may be nil.
func (c *Cache) Split(l *Layer, seqs []*Seq, slots []int32) (parts int) {
	x := &c.split
	x.layer, x.seqs, c.listed = l, seqs, slots
	if x.groups = c.partGroups; x.groups == 0 {
		x.groups = groupsOf(l.To-l.From, len(seqs))
	}
	n := len(seqs) * c.partsOf(l)
	for len(x.shares) < n {
		x.shares = append(x.shares, share{recent: make([]int32, c.ring+1)})
	}
	return n
}

// groupsOf returns the number of groups per part, for the given requests with the given groups
// each. Parts are of nearly equal size.
func groupsOf(groups, requests int) int {
	most := min(max(leastGroups, (groups*requests+fewParts-1)/fewParts), PartGroups)
	parts := (groups + most - 1) / most
	return (groups + parts - 1) / parts
}

// partsOf returns the number of parts per request.
func (c *Cache) partsOf(l *Layer) int {
	return (l.To - l.From + c.split.groups - 1) / c.split.groups
}

// Part returns the request of a part, as an index into Split's seqs, and the range of its
// groups.
func (c *Cache) Part(i int) (req, from, to int) {
	l := c.split.layer
	n := c.partsOf(l)
	from = l.From + i%n*c.split.groups
	return i / n, from, min(l.To, from+c.split.groups)
}

// AccessPart applies the selections of a part's groups. Marks and slots are scattered in
// memory, so they are read first for all groups, in loops without dependences, so that cache
// misses overlap.
func (c *Cache) AccessPart(i int, sels []Selection) {
	sh := c.split.shares[i] // a copy, because neighbours share cache lines
	req, from, _ := c.Part(i)
	s := c.split.seqs[req]
	sh.read = 0
	for j := range sels {
		sh.read += c.prefetch(s, from+j, &sels[j])
	}
	for j := range sels {
		c.create(&sh, s, from+j)
		c.access(&sh, s, from+j, &sels[j])
	}
	c.split.shares[i] = sh
}

// prefetch reads the marks and slots that an access needs.
func (c *Cache) prefetch(s *Seq, g int, sel *Selection) (read uint32) {
	if sel.All || !sel.Follows {
		return 0
	}
	row := s.row(g)[sel.Sinks:]
	if c.addressed {
		slots := s.slots[g*s.cap+sel.Sinks:]
		for _, b := range sel.Came {
			read += slots[b]
		}
	}
	return read + readAll(row, sel.Dropped) + readAll(row, sel.Came)
}

// Join merges the parts of a Split. Missing blocks stay in their parts until fetch.
func (c *Cache) Join() {
	x := &c.split
	x.begin = x.begin[:0]
	total, per := len(c.missing), c.partsOf(x.layer)
	for i := range len(x.seqs) * per {
		sh, s := &x.shares[i], x.seqs[i/per]
		c.writing = append(c.writing, sh.writing...)
		sh.writing = sh.writing[:0]
		for j, n := range sh.recent {
			s.recent[j] += n
			sh.recent[j] = 0
		}
		c.count(sh, s, x.layer.pool)
		x.begin = append(x.begin, total)
		total += len(sh.missing)
	}
	c.missing = slices.Grow(c.missing, total-len(c.missing))[:total]
	if c.wants {
		c.wanted = slices.Grow(c.wanted, total-len(c.wanted))[:total]
	}
}

// fetch copies the layer's missing blocks [first, last) from the parts. Different ranges may be
// copied concurrently.
func (c *Cache) fetch(first, last int) {
	x := &c.split
	i, _ := slices.BinarySearch(x.begin, first+1)
	for i = max(0, i-1); i < len(x.begin) && x.begin[i] < last; i++ {
		sh, at := &x.shares[i], x.begin[i]
		from, to := max(0, first-at), min(len(sh.missing), last-at)
		if from < to {
			copy(c.missing[at+from:], sh.missing[from:to])
			if c.wants {
				copy(c.wanted[at+from:], sh.wanted[from:to])
			}
		}
	}
}

// fetched ends the Split after all missing blocks are copied.
func (c *Cache) fetched() {
	x := &c.split
	for i := range x.begin {
		sh := &x.shares[i]
		sh.missing, sh.wanted = sh.missing[:0], sh.wanted[:0]
	}
	x.begin = x.begin[:0]
}
