package calibrate

import (
	"fmt"
	"slices"
	"sync"
)

// launchPoints are what a call costs, and the copies of a layer's round trip
// between GPU and CPU.
func launchPoints(s scale) []Point {
	all := []Point{point(probeSubmit, ""), point(probeSync, "")}
	// A list of 64 blocks for each of 32 KV heads is 8 KiB a request.
	for _, bytes := range []int64{8 * kib, 16 * kib, 24 * kib, 32 * kib, 48 * kib, 64 * kib, 128 * kib} {
		all = append(all, point(probeDown, "", bytes), point(probeUp, "", bytes))
	}
	all = append(all, point(probePair, ""))
	// With the slots of its blocks, 256 KiB are 16 requests.
	for _, bytes := range []int64{4 * kib, 16 * kib, 64 * kib, 256 * kib} {
		all = append(all, point(probeBetween, "", bytes))
	}
	for _, bytes := range []int64{64 * mib, 256 * mib, 1 * gib} {
		all = append(all, point(probeHBM, "", bytes))
	}
	return all
}

func linkPoints(s scale) []Point {
	var all []Point
	for _, bytes := range s.link {
		all = append(all, point(probeH2D, "", bytes), point(probeD2H, "", bytes))
	}
	for _, bytes := range s.duplex {
		all = append(all, point(probeDuplexCopy, "", bytes), point(probeDuplexKernel, "", bytes), point(probeDuplexGather, "", bytes))
	}
	return all
}

// loadPoints vary block size and count at one pool size, and the pool size:
// FlashH2D reads it in place. Pools rise.
func loadPoints(s scale, limits Limits) []Point {
	var all []Point
	for _, pool := range s.perPool(limits) {
		if pool != basePool {
			all = append(all, otherPool(s, limits, pool)...)
			continue
		}
		engines := []string{probeLoadMemcpy, probeLoadFlash}
		if limits.Batched {
			engines = []string{probeLoadMemcpy, probeLoadBatched, probeLoadFlash}
		}
		for _, engine := range engines {
			for _, block := range s.blockBytes {
				for _, n := range s.blocks {
					if engine == probeLoadBatched && n > mostBatched {
						continue
					}
					if fits(n, block, s.moved) {
						all = append(all, point(engine, "", block, n, pool))
					}
				}
			}
		}
	}
	return all
}

// mostBatched are the blocks of a batched copy, beyond which it takes as long as
// they are many, tens of milliseconds.
const mostBatched = 2048

// otherPool varies block size and count of FlashH2D, has two counts of copies one
// by one, whose cost grows with the pool, and one point of each other engine,
// whose cost no pool is expected to change.
func otherPool(s scale, limits Limits, pool int64) []Point {
	var all []Point
	for _, block := range s.poolBlocks {
		for _, n := range s.blocks {
			if n >= 1024 && fits(n, block, s.moved) && n*block <= pool*mib {
				all = append(all, point(probeLoadFlash, "", block, n, pool))
			}
		}
	}
	const block, n, few = 16 * kib, 2048, 256
	if fits(n, block, s.moved) && n*block <= pool*mib {
		all = append(all, point(probeSaveGPU, "", block, n, pool), point(probeLoadMemcpy, "", block, n, pool))
		if limits.Batched {
			all = append(all, point(probeLoadBatched, "", block, n, pool))
		}
		all = append(all, point(probeLoadMemcpy, "", block, few, pool), point(probeSaveMemcpy, "", block, few, pool))
		all = append(all, point(probeSaveMemcpy, "", block, n, pool), point(probeSaveFlash, "", block, n, pool, int64(limits.Threads)))
	}
	return all
}

func fits(blocks, blockBytes, most int64) bool { return blocks*blockBytes <= most }

// savePoints vary block size and count, and for FlashD2H the threads.
func savePoints(s scale, limits Limits) []Point {
	var all []Point
	for _, engine := range []string{probeSaveGPU, probeSaveMemcpy} {
		for _, block := range s.blockBytes {
			for _, n := range s.blocks {
				if fits(n, block, s.moved) {
					all = append(all, point(engine, "", block, n, basePool))
				}
			}
		}
	}
	for _, threads := range scatterThreads(s, limits) {
		for _, block := range s.blockBytes {
			for _, n := range s.blocks {
				// Few small blocks cost the call alone; a layer of a chunk has
				// thousands. Every other size says what threads gain.
				if fits(n, block, s.moved) && n >= 64 && block >= 2*kib && block <= 64*kib && block != 4*kib && block != 32*kib {
					all = append(all, point(probeSaveFlash, "", block, n, basePool, threads))
				}
			}
		}
	}
	return all
}

// scatterThreads are thread counts up to the CPUs, which are one of them.
func scatterThreads(s scale, limits Limits) []int64 {
	var threads []int64
	for _, n := range s.threads {
		if n < int64(limits.Threads) {
			threads = append(threads, n)
		}
	}
	return append(threads, int64(limits.Threads))
}

// liveProbes are decode steps of the live loop.
var liveProbes = []string{probeLive, probeLiveOffload, probeLiveLoads}

// lookupRequests are the batches whose lists the GPU looks up.
var lookupRequests = []int64{1, 2, 4, 8, 16}

// queuedBlocks are loaded behind a layer's weights: few, as it is the launch that
// is not known from loads alone.
var queuedBlocks = []int64{16, 64, 256}

// livePoints are decode steps of the live loop, whose host time grows with
// requests and, with offloading, with layers and what they load; before them
// kernels that only some of a server's layers have.
func livePoints(s scale) []Point {
	var all []Point
	for _, tokens := range []int64{1, 16, 64} {
		all = append(all, point(probeKVWrite, s.shapes[0], tokens))
	}
	for _, shape := range s.shapes {
		for _, tokens := range s.filled {
			all = append(all, point(probeRope, shape, tokens), point(probeDigest, shape, tokens))
			if tokens == blockTokens || tokens >= 1024 && tokens <= 8192 {
				all = append(all, point(probeRing, shape, tokens))
			}
		}
	}
	for _, requests := range lookupRequests {
		all = append(all, point(probeLookup, s.shapes[0], requests))
		if missing := 8 * requests; requests != 2 && requests != 8 { // of 2,048 listed by a request with 32 KV heads
			all = append(all, point(probeLookupMissing, s.shapes[0], requests, missing), point(probeTable, "", missing))
		}
	}
	for _, requests := range s.requests {
		for _, probe := range []string{probeBehindNone, probeBehindLists, probeBehindWrite, probeBehindLookup} {
			all = append(all, point(probe, s.shapes[0], requests))
		}
		all = append(all, point(probeBehindGather, s.shapes[0], requests))
		all = append(all, point(probeBehindTable, s.shapes[0], requests, 8*requests), point(probeBehindMissing, s.shapes[0], requests, 8*requests))
	}
	for _, requests := range s.requests { // all that one or two of them list, as behind their prefills
		for missing := int64(wholeMissing); missing <= min(requests, 2)*wholeMissing; missing += wholeMissing {
			all = append(all, point(probeBehindTable, s.shapes[0], requests, missing), point(probeBehindMissing, s.shapes[0], requests, missing))
		}
	}
	middle := len(s.requests) / 2
	for _, blocks := range queuedBlocks {
		all = append(all, point(probeBehindLoad, s.shapes[0], s.requests[middle], blocks))
	}
	for i, requests := range s.requests {
		all = append(all, point(probeLive, shapes[0], s.layers, requests))
		var rooms []float64
		switch i {
		case middle:
			rooms = liveRooms
		case middle + 1:
			rooms = liveRooms[:2] // where there are most loads
		default:
			continue
		}
		all = append(all, point(probeLiveOffload, shapes[0], s.layers, requests)) // the same without loads
		for _, room := range rooms {
			if n := loadsOf(s.layers, requests, room); n > 0 {
				all = append(all, point(probeLiveLoads, shapes[0], s.layers, requests, n))
			}
		}
	}
	return append(all, leavingPoints(s.layers)...)
}

// leavingPoints are steps of servers that requests leave one after another; they
// come last, as the ones that ask most of a machine. Points of one server follow
// one another, and those of servers that are visited again follow all others: the
// visits of one are then as far apart as can be.
func leavingPoints(layers int64) (all []Point) {
	for _, probes := range [][]string{
		{probeLiveDense, probeLivePrompt, probeLiveHeld, probeLiveCPU, probeLiveHeldPSA, probeLiveCPUPSA},
		{probeLiveLeaving, probeLivePSA},
	} {
		for _, shape := range shapes {
			for _, probe := range probes {
				for _, tight := range []int64{0, 1} {
					p := Point{Probe: probe, Shape: shape, Axes: []Axis{{"layers", layers}, {"missing", tight}}}
					kind := p.leavingKind()
					if tight == 0 || kind.lookup && (kind.psa || shape == shapes[0]) {
						all = append(all, leavingServer(p)...)
					}
				}
			}
		}
	}
	return all
}

// chunksOf are a prompt's chunks.
func chunksOf(probe, shape string, layers int64) (all []Point) {
	for prefix := int64(0); prefix < livePrompt; prefix += liveChunk {
		all = append(all, point(probe, shape, layers, prefix))
	}
	return all
}

// leavingServer are the points of one server, that of a point.
func leavingServer(of Point) (all []Point) {
	kind, layers := of.leavingKind(), of.At("layers")
	if kind.single {
		return chunksOf(of.Probe, of.Shape, layers)
	}
	most := leavingMost(of.Shape, kind)
	for _, n := range leavingBatches {
		if n > most || kind.tight && of.Shape != shapes[0] && !slices.Contains(fewBatches, n) {
			continue
		}
		both := !kind.held && !kind.lookup // steps that are split are points too, of a few batches
		split := both && n&(n-1) == 0 && n <= 8
		if kind.lookup && !kind.psa {
			missing := int64(0)
			if kind.tight {
				missing = meansOf(of, n).loads
			}
			if kind.tight == (missing > 0) {
				all = append(all, point(of.Probe, of.Shape, layers, n, missing))
			}
			switch {
			case !kind.tight:
				all = append(all, point(probeLiveLookup, of.Shape, layers, n))
			case missing > 0:
				all = append(all, point(probeLiveTight, of.Shape, layers, n, missing))
			}
			continue
		}
		if !kind.psa {
			if split || !both {
				all = append(all, point(of.Probe, of.Shape, layers, n))
			}
			if both {
				all = append(all, point(probeLiveUnsplit, of.Shape, layers, n))
			}
			continue
		}
		at := meansOf(of, n)
		switch {
		case at.rounds == 0:
		case !kind.lookup:
			if split || !both {
				all = append(all, point(of.Probe, of.Shape, layers, n, at.rounds))
			}
			if both {
				all = append(all, point(probeLiveUnsplitPSA, of.Shape, layers, n, at.rounds))
			}
		case kind.tight == (at.loads > 0):
			all = append(all, point(of.Probe, of.Shape, layers, n, at.rounds, at.loads))
			if kind.tight {
				all = append(all, point(probeLiveTightPSA, of.Shape, layers, n, at.rounds, at.loads))
			} else {
				all = append(all, point(probeLiveLookupPSA, of.Shape, layers, n, at.rounds))
			}
		}
	}
	if kind.dense {
		all = append(all, chunksOf(probeLiveChunk, of.Shape, layers)...)
	}
	if of.Probe == probeLiveLeaving {
		all = append(all, point(probeLiveWhole, of.Shape, layers, most), point(probeLiveFreed, of.Shape, layers, most))
	}
	return all
}

// leavingBatches are the numbers of requests whose steps are points, fewBatches those
// of servers that say little that others do not.
var (
	leavingBatches = []int64{16, 12, 8, 6, 4, 3, 2, 1}
	fewBatches     = []int64{16, 12, 8, 4, 1}
)

// meansOf are a layer's in the server of a point.
func meansOf(p Point, requests int64) leavingMeans {
	kind := p.leavingKind()
	kind.held, kind.dense, kind.lookup = false, false, kind.lookup && kind.tight // lists are the same
	key := leavingKey{shape: p.Shape, kind: kind, layers: p.At("layers")}
	if known, ok := meansKnown.Load(key); ok {
		return known.(map[int64]leavingMeans)[requests]
	}
	means := map[int64]leavingMeans{}
	if c, err := p.leavingCase(); err == nil {
		c.kind = kind
		if m, err := c.means(); err == nil {
			means = m
		}
	}
	meansKnown.Store(key, means)
	return means[requests]
}

var meansKnown sync.Map // leavingKey to a layer's means by requests

// liveRooms are room for selected blocks under probeLiveLoads, of what one step
// selects: every seventh block of it is loaded in the first, next to none in the
// last, which has room for most of the cache.
var liveRooms = []float64{1.1, 1.5, 3.5}

// roomOf is the room in which a layer loads as much as the point says.
func roomOf(p Point, loads int64) (float64, error) {
	for _, room := range liveRooms {
		if loadsOf(p.At("layers"), p.At("requests"), room) == loads {
			return room, nil
		}
	}
	return 0, fmt.Errorf("no room of %v makes a layer load %d blocks", liveRooms, loads)
}

// loadsOf is what a layer of a model of some layers loads; plans are made many
// times.
func loadsOf(layers, requests int64, room float64) int64 {
	key := liveKey{layers, requests, room}
	if n, ok := liveLoadsKnown.Load(key); ok {
		return n.(int64)
	}
	m, err := shapeModel(shapes[0])
	if err != nil {
		panic(err)
	}
	model := *m
	model.Layers = int(layers)
	c := newLiveCase(&model, probeLiveLoads, int(requests))
	c.room = room
	n, err := c.loads()
	if err != nil {
		n = 0 // one request's prefill may need more than the decodes
	}
	liveLoadsKnown.Store(key, n)
	return n
}

type liveKey struct {
	layers, requests int64
	room             float64
}

var liveLoadsKnown sync.Map // liveKey to blocks of a layer
