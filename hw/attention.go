package hw

import (
	"math"

	"sparseserve/sim"
)

// stream is a kernel bound by HBM bytes: decode attention over whole contexts
// or over selected blocks, and the scoring of block metadata. A list is what
// one KV head of one request attends to, or chooses from.
//
//	t = max(floor, launch + bytes/rate + decode + scoring), at least max(FLOPs/peak, bytes/HBM)
//	decode  = g splits merge + what waves.go adds
//	scoring = [length > at_once] long + [lists > room] (crowd + (g-1) per_query) +
//	          max(0, lists - room) (per_head + [length > at_once] per_long)
//
// with g query heads a KV head. The decode kernel cuts lists into splits, so
// that few lists fill the card, and merges the splits of a list one after
// another. Whole contexts of any lengths are shared among its CTAs equally, so
// that their sum counts and not the longest of them. The scoring kernel gives a list a cluster of CTAs where there is
// room, else one CTA. A term whose figure a profile does not give is 0.
type stream struct {
	peak                  peak
	launch, floor, rate   float64
	merge, ctas           float64
	atOnce, room          float64
	long, crowd, perQuery float64
	perHead, perLong      float64
	tail, piece, pages    float64
	cut, join, wave, full float64
	largest               float64 // bytes measured; 0 when not said
	heads, group          float64 // KV heads; query heads of each
	bytesEach             float64 // HBM bytes per item, all KV heads
	flopsEach             float64 // FLOPs per item
}

// splitTokens is the least of a list that a CTA takes: four warps, each a
// block of 32 tokens.
const splitTokens = cutWarps * cutTokens

// newStream prices items (tokens or blocks) of the given bytes and FLOPs.
func newStream(p *Profile, m *Model, s Stream, bytesEach, flopsEach float64) stream {
	return stream{
		peak: p.peak(), launch: s.Launch.SI(), floor: s.Floor.optional(), rate: s.Rate.SI(),
		merge: s.Merge.optional(), ctas: s.CTAs.optional(),
		tail: s.Tail.optional(), piece: s.Piece.optional(), pages: s.Pages.optional(),
		cut: s.Cut.optional(), join: s.Join.optional(), wave: s.Wave.optional(), full: s.Full.optional(),
		atOnce: s.AtOnce.optional(), room: s.Room.optional(),
		long: s.Long.optional(), crowd: s.Crowd.optional(), perQuery: s.PerQuery.optional(),
		perHead: s.PerHead.optional(), perLong: s.PerLong.optional(),
		largest: s.Largest.optional(),
		heads:   float64(m.KVHeads), group: float64(m.QHeads / m.KVHeads),
		bytesEach: bytesEach, flopsEach: flopsEach,
	}
}

// newDense prices a KV token of one layer, all KV heads: 2 KVHeads d elements,
// 4 d FLOPs for each query head.
func newDense(p *Profile, m *Model) stream {
	return newStream(p, m, p.DenseDecode, float64(m.LayerKVBytesPerToken()), 4*float64(m.QHeads*m.HeadDim))
}

// newSparse prices a selected KV token as newDense does.
func newSparse(p *Profile, m *Model) stream {
	return newStream(p, m, p.SparseDecode, float64(m.LayerKVBytesPerToken()), 4*float64(m.QHeads*m.HeadDim))
}

// newScoring prices a block's metadata in all KV heads: two vectors against
// each query head.
func newScoring(p *Profile, m *Model) stream {
	return newStream(p, m, p.Scoring, float64(int64(m.KVHeads)*m.MetaBytesPerBlock()), 4*float64(m.QHeads*m.HeadDim))
}

// seconds returns the time of n items, summed over requests, and whether they
// are more than measured.
func (k *stream) seconds(n, requests float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	requests = math.Max(requests, 1)
	lists, length, bytes := requests*k.heads, n/requests, n*k.bytesEach
	t = k.launch + bytes/k.rate
	if k.cut+k.join+k.wave+k.full > 0 {
		w := DecodeWavesOf(k.ctas, lists, length)
		t += w.Seconds(k.cut, k.join, k.wave, k.full, cutTokens*k.bytesEach/k.heads/k.rate) + k.group*w.Splits*k.merge
	} else {
		t += k.group * ListSplits(k.ctas, lists, length) * k.merge
	}
	over, each := math.Max(0, lists-k.room), k.perHead
	if length > k.atOnce {
		t += k.long
		each += k.perLong
	}
	if over > 0 {
		t += k.crowd + (k.group-1)*k.perQuery + over*each
	}
	return max(t, k.floor, k.peak.floor(n*k.flopsEach, bytes)), k.largest > 0 && bytes > k.largest
}

// ListSplits returns into how many parts the decode kernel cuts each of some
// lists of so many tokens, with ctas of them at once on the card.
func ListSplits(ctas, lists, tokens float64) float64 {
	return max(1, min(math.Ceil(tokens/splitTokens), math.Floor(ctas/lists)))
}

// PSADecodeSeconds returns the time in which one layer attends to so many
// blocks of each KV head of each request by progressive sparse attention (PSA,
// Algorithm 1), in rounds of a microbatch and so many launches. It is false
// where the profile has no figures of PSA.
func (p *Profile) PSADecodeSeconds(m *Model, requests, blocks, blockTokens, microbatch, launches int) (t float64, known bool) {
	k := newPSAKernel(p, m)
	if !k.known || requests < 1 || blocks < 1 || microbatch < 1 {
		return 0, k.known
	}
	tokens := float64(requests) * float64(blocks) * float64(blockTokens)
	bytes := tokens * float64(m.LayerKVBytesPerToken())
	n := float64(max(launches, 1))
	rounds := math.Ceil(float64(blocks) / float64(microbatch))
	lists := float64(requests) * k.heads
	for i := range int(n) {
		t += k.seconds(lists, rounds/n, float64(blocks)/n, bytes/n, i == 0)
	}
	return math.Max(t, p.peak().floor(4*float64(m.QHeads*m.HeadDim)*tokens, bytes)), true
}

// PSARoundsSeconds returns the time in which one layer attends to lists of which
// so many reach each round of a microbatch, in one launch. It is false where the
// profile has no figures of PSA.
func (p *Profile) PSARoundsSeconds(m *Model, requests, microbatch int, reach []int) (t float64, known bool) {
	g := newProgressive(p, m, &DeviceOptions{Microbatch: microbatch})
	if !g.known || requests < 1 || len(reach) == 0 {
		return 0, g.known
	}
	rounds := make([]sim.Round, len(reach))
	for i, n := range reach {
		rounds[i].Tokens = int64(n) * int64(microbatch) * psaBlockTokens / int64(m.KVHeads)
	}
	return g.launchSeconds(rounds, float64(requests), true), true
}

// psaKernel prices launches of the PSA kernel. Of many lists a CTA takes each,
// microbatch by microbatch, decides after each whether to go on, and keeps its
// state from launch to launch:
//
//	t = launch + lists per_head + max(rounds round + length per_block, bytes/rate)
//
// with `relaunch` for all but a layer's first launch. Few lists (few.room at most)
// are shared by clusters of CTAs, which take a wave of blocks at a time:
//
//	t = few.launch + group few.query + (waves-1) (few.next_wave + group few.wave_query) + bytes/few.rate
//
// group: query heads of a KV head.
//
// Lists of one launch that end in different rounds leave the card to the longer
// ones, which go no faster than a CTA's own copies come: where `alone` is known,
// bytes/rate is summed over rounds (few lists: waves), each at least `alone` for
// each block that one CTA (one warp of a cluster) takes in it, but never longer
// than if no list had ended. So equal lists cost what they cost without it.
type psaKernel struct {
	known                                            bool
	heads, group                                     float64
	launch, relaunch, perHead, round, perBlock, rate float64

	room, wave                               float64
	few, query, nextWave, waveQuery, fewRate float64

	alone, fewAlone, full float64
}

func newPSAKernel(p *Profile, m *Model) psaKernel {
	f := &p.PSADecode
	k := psaKernel{known: f.Rate.Set(), heads: float64(m.KVHeads), group: float64(m.QHeads / m.KVHeads)}
	if !k.known {
		return k
	}
	k.launch, k.relaunch, k.perHead = f.Launch.SI(), f.Relaunch.optional(), f.PerHead.optional()
	k.round, k.perBlock, k.rate = f.Round.SI(), f.PerBlock.optional(), f.Rate.SI()
	if f.Few.Room.Set() {
		k.room, k.wave, k.few, k.query = f.Few.Room.SI(), f.Few.Wave.SI(), f.Few.Launch.SI(), f.Few.Query.optional()
		k.nextWave, k.waveQuery, k.fewRate = f.Few.NextWave.optional(), f.Few.WaveQuery.optional(), f.Few.Rate.SI()
		k.fewAlone, k.full = f.Few.Alone.optional(), f.Few.Full.optional()
		if k.full == 0 {
			k.full = k.room / 2
		}
	}
	k.alone = f.Alone.optional()
	return k
}

// seconds returns the time of one launch over so many lists of a length in
// blocks.
func (k *psaKernel) seconds(lists, rounds, length, bytes float64, first bool) float64 {
	if lists <= k.room {
		return k.few + k.group*k.query + (PSAWaves(lists, k.full, length, k.wave)-1)*(k.nextWave+k.group*k.waveQuery) + bytes/k.fewRate
	}
	t := k.relaunch
	if first {
		t = k.launch
	}
	return t + lists*k.perHead + math.Max(rounds*k.round+length*k.perBlock, bytes/k.rate)
}

// PSAWaves returns the waves of blocks in which clusters take lists of a length
// in blocks. With more lists than waves are whole for, clusters are half as large.
func PSAWaves(lists, full, length, wave float64) float64 {
	if lists > full {
		wave /= 2
	}
	return math.Max(1, math.Ceil(length/wave))
}

// uneven says whether lists of a launch that end in different rounds have a
// price of their own.
func (k *psaKernel) uneven(lists float64) bool {
	if lists <= k.room {
		return k.fewAlone > 0
	}
	return k.alone > 0
}

// roundsSeconds returns the time of one launch of so many lists over rounds of
// a microbatch of blocks, each with the tokens that lists which have not ended
// attend to for each KV head. bytes are those of a token, blockBytes those of a
// block of one list.
func (k *psaKernel) roundsSeconds(lists, microbatch float64, rounds []sim.Round, bytes, blockBytes float64, first bool) float64 {
	if lists > k.room {
		t := k.relaunch
		if first {
			t = k.launch
		}
		t += lists * k.perHead
		for _, r := range rounds {
			all := lists * microbatch * blockBytes / k.rate
			t += max(k.round+microbatch*k.perBlock, float64(r.Tokens)*bytes/k.rate, min(microbatch*k.alone, all))
		}
		return t
	}
	wave, warps := k.wave, k.wave/4
	switch {
	case lists > k.full:
		wave, warps = k.wave/2, k.wave/8
	case 2*lists <= k.full:
		warps = k.wave / 2
	}
	// Rounds of a wave; where a round is larger than a wave, a list is taken to end
	// with a round.
	length := float64(len(rounds)) * microbatch
	t := k.few + k.group*k.query
	for from := 0.0; from < length; from += wave {
		if from > 0 {
			t += k.nextWave + k.group*k.waveQuery
		}
		blocks := math.Min(wave, length-from)
		read := 0.0
		for i := int(from / microbatch); i < len(rounds) && float64(i)*microbatch < from+blocks; i++ {
			begin, end := math.Max(from, float64(i)*microbatch), math.Min(from+blocks, float64(i+1)*microbatch)
			read += float64(rounds[i].Tokens) * (end - begin) / microbatch
		}
		t += max(read*bytes, min(math.Ceil(blocks/warps)*k.fewAlone*k.fewRate, lists*blocks*blockBytes)) / k.fewRate
	}
	return t
}
