package kv

import (
	"slices"
	"time"
)

// accessTime is what the access of one group takes, with what its selection is
// made of and listed to, about.
const accessTime = 700 * time.Nanosecond

// accessShare is how many groups of a request are worth a core of their own.
// Tests make it small.
var accessShare = 8

// AccessLayer applies the selections of all groups of a sampled layer for
// several different requests: selection writes that of the i-th one in group g,
// and is called from several goroutines at once. The outcome is that of Access
// for one after the other. Where slots is not nil it is what lists their
// blocks' slots in: that of the j-th block of a selection (sinks, window, then
// candidates) at its At + j. The slots of candidates that are Added are written
// there, and by Fill those of what it loads; the others are for selection to write.
func (c *Cache) AccessLayer(li int, seqs []*Seq, slots []int32, selection func(i, g int, sel *Selection)) {
	l := &c.layers[li]
	parts := (l.to - l.from + accessShare - 1) / accessShare // of a request
	n := len(seqs) * parts
	for len(c.shares) < n {
		c.shares = append(c.shares, share{recent: make([]int32, c.window), sels: make([]Selection, groupsAhead)})
	}
	c.listed = slots
	SideBySide(n, time.Duration(l.to-l.from)*accessTime/time.Duration(parts), func(i int) {
		sh := c.shares[i] // apart from its neighbours in the caches of the cores
		from := l.from + i%parts*accessShare
		c.accessSome(&sh, seqs[i/parts], i/parts, from, min(l.to, from+accessShare), selection)
		c.shares[i] = sh
	})
	c.unmerged = c.unmerged[:0]
	total := len(c.missing)
	for i := range n {
		sh, s := &c.shares[i], seqs[i/parts]
		c.writing = append(c.writing, sh.writing...)
		sh.writing = sh.writing[:0]
		for j, n := range sh.recent {
			s.recent[j] += n
			sh.recent[j] = 0
		}
		c.count(sh, s, l.pool)
		c.unmerged = append(c.unmerged, total)
		total += len(sh.missing)
	}
	c.missing = slices.Grow(c.missing, total-len(c.missing))[:total]
	if c.detail {
		c.wanted = slices.Grow(c.wanted, total-len(c.wanted))[:total]
	}
}

// groupsAhead is for how many groups memory is read at one time.
const groupsAhead = 8

// accessSome makes the accesses of one request to some of its groups. What they
// need of memory lies anywhere; it is read first for several groups, in loops that
// wait for none, so that many reads are under way together.
func (c *Cache) accessSome(sh *share, s *Seq, i, from, to int, selection func(i, g int, sel *Selection)) {
	sels := sh.sels
	for ; from < to; from += len(sels) {
		n, read := min(len(sels), to-from), uint32(0)
		for j := range n {
			selection(i, from+j, &sels[j])
		}
		for j := range n {
			read += c.ahead(s, from+j, &sels[j])
		}
		sh.read = read
		for j := range n {
			c.create(sh, s, from+j)
			c.access(sh, s, from+j, &sels[j])
		}
	}
}

// ahead reads what an access is about to.
func (c *Cache) ahead(s *Seq, g int, sel *Selection) (read uint32) {
	if sel.All || !sel.Follows {
		return 0
	}
	row, slots := s.row(g)[sel.Sinks:], s.slots[g*s.cap+sel.Sinks:]
	for _, b := range sel.Dropped {
		read += uint32(row[b])
	}
	for _, i := range sel.Added {
		b := sel.Next[i]
		read += uint32(row[b]) + slots[b]
	}
	return read
}

// fetch copies what is missing, from the first to before the last of the layer,
// from the shares that accesses side by side have left it in. Different parts of
// it may be fetched at the same time.
func (c *Cache) fetch(first, last int) {
	i, _ := slices.BinarySearch(c.unmerged, first+1)
	for i = max(0, i-1); i < len(c.unmerged) && c.unmerged[i] < last; i++ {
		sh, at := &c.shares[i], c.unmerged[i]
		from, to := max(0, first-at), min(len(sh.missing), last-at)
		if from < to {
			copy(c.missing[at+from:], sh.missing[from:to])
			if c.detail {
				copy(c.wanted[at+from:], sh.wanted[from:to])
			}
		}
	}
}

// fetched ends what AccessLayer began: all that is missing is where it belongs.
func (c *Cache) fetched() {
	for i := range c.unmerged {
		sh := &c.shares[i]
		sh.missing, sh.wanted = sh.missing[:0], sh.wanted[:0]
	}
	c.unmerged = c.unmerged[:0]
}
