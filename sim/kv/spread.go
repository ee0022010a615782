package kv

import "math"

// bookMissed counts a Fill's loads by request.
func (c *Cache) bookMissed() {
	for i := 0; i < len(c.missing); {
		seq, from := c.missing[i].seq, i
		// those of a request mostly follow one another
		for i < len(c.missing) && c.missing[i].seq == seq {
			i++
		}
		s := c.seqs[seq]
		if s.missed == 0 {
			c.missedBy = append(c.missedBy, s)
		}
		s.missed += i - from
	}
}

// Spread estimates the locality of a layer's loads in DRAM, where the KV heads of a block of
// tokens share a page: how many distinct pages they touch, and, for repeated touches, the mean
// KV size of their request. Loads are those of the Fills since the last call, over so many
// layers of the model; those of each KV head are independent of the others':
//
//	pages = sum of B (1 - (1 - m/B)^heads), m loads of each head of a request of B blocks of tokens
func (c *Cache) Spread(layers int) (places, span int64) {
	var first, again, bytes float64
	heads := float64(c.Geo.KVHeads)
	for _, s := range c.missedBy {
		if s.missed == 0 { // it left
			continue
		}
		n, b := float64(s.missed)/c.Sample.Rate/float64(layers), float64(s.blocks)
		s.missed = 0
		p := b * -math.Expm1(heads*math.Log1p(-math.Min(1, n/heads/b)))
		first += p
		again += n - p
		bytes += (n - p) * b * float64(c.Geo.BlockBytes) * float64(c.Geo.Groups())
	}
	c.missedBy = c.missedBy[:0]
	if again > 0 {
		span = int64(bytes / again)
	}
	return int64(math.Ceil(first - 1e-9)), span
}
