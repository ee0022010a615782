package hw

import "slices"

// turns is a layer's round trip between GPU and CPU as it was measured, batch by
// batch and for some numbers of KV heads. It is linear in nothing: what requests
// are looked up by is shared out to cores, eight lists a share, by helper threads
// that stay awake where there is enough to do, and each more that is woken costs
// too. On 16 cores a layer's round trip takes as long for six requests of 32 KV
// heads as for three.
//
//	t(n, bytes) = v(n) + (bytes - b(n))/rate
//
// with v and b linear between batches measured, and between numbers of KV heads;
// beyond the most requests v grows by request for each and b stays. The zero value
// knows nothing.
type turns struct {
	at []turn // rising
}

type turn struct{ requests, seconds, bytes float64 }

// newTurns readies rows for a model's KV heads.
func newTurns(rows []TurnRow, kvHeads int) turns {
	var below, above []turn // of the nearest numbers of KV heads
	low, high := 0, 0
	for _, r := range rows {
		at := turn{float64(r.Requests), r.Figure.SI(), r.ListsKiB * 1024}
		switch {
		case r.KVHeads <= kvHeads:
			if r.KVHeads != low {
				low, below = r.KVHeads, nil
			}
			below = append(below, at)
		case high == 0 || r.KVHeads == high:
			high, above = r.KVHeads, append(above, at)
		}
	}
	switch {
	case low == kvHeads || above == nil:
		return turns{below}
	case below == nil:
		return turns{above}
	}
	share := float64(kvHeads-low) / float64(high-low)
	a, b := turns{below}, turns{above}
	var at []turn
	most := min(below[len(below)-1].requests, above[len(above)-1].requests) // of both; beyond, v grows by request
	for _, t := range slices.Concat(below, above) {
		if t.requests > most {
			continue
		}
		x, y := a.of(t.requests), b.of(t.requests)
		at = append(at, turn{t.requests, x.seconds + share*(y.seconds-x.seconds), x.bytes + share*(y.bytes-x.bytes)})
	}
	slices.SortFunc(at, func(x, y turn) int { return int(x.requests - y.requests) })
	return turns{slices.CompactFunc(at, func(x, y turn) bool { return x.requests == y.requests })}
}

func (t *turns) known() bool { return len(t.at) > 0 }

// of interpolates between batches; beyond them it is the nearest.
func (t *turns) of(requests float64) turn {
	i := 0
	for i < len(t.at) && t.at[i].requests < requests {
		i++
	}
	switch i {
	case 0:
		return t.at[0]
	case len(t.at):
		return t.at[i-1]
	}
	a, b := t.at[i-1], t.at[i]
	share := (requests - a.requests) / (b.requests - a.requests)
	return turn{requests, a.seconds + share*(b.seconds-a.seconds), a.bytes + share*(b.bytes-a.bytes)}
}
