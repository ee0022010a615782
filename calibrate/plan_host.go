package calibrate

import (
	"fmt"
	"sync"
)

// launchPoints are what a launch and its end cost the CPU.
func launchPoints() []Point { return []Point{point(probeSync, "")} }

func linkPoints(s scale) []Point {
	var all []Point
	for _, bytes := range s.link {
		all = append(all, point(probeH2D, "", bytes), point(probeD2H, "", bytes))
	}
	for _, bytes := range s.duplex {
		all = append(all, point(probeDuplexCopy, "", bytes), point(probeDuplexKernel, "", bytes))
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
		for _, engine := range []string{probeLoadMemcpy, probeLoadFlash} {
			for _, block := range s.blockBytes {
				for _, n := range s.blocks {
					if fits(n, block, s.moved) {
						all = append(all, point(engine, "", block, n, pool))
					}
				}
			}
		}
	}
	return all
}

// otherPool varies block size and count of FlashH2D, and has two counts of copies one
// by one: what both cost grows with the pool.
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
		all = append(all, point(probeLoadMemcpy, "", block, n, pool), point(probeLoadMemcpy, "", block, few, pool))
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
				// Few blocks cost the call alone; a layer of a chunk has thousands.
				if fits(n, block, min(s.moved, mostScattered)) && n >= 256 {
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

// livePoints are decode steps of the live loop, whose host time grows with
// requests; before them kernels that only some of a server's layers have.
func livePoints(s scale) []Point {
	var all []Point
	for _, shape := range s.shapes {
		for _, tokens := range s.filled {
			all = append(all, point(probeRope, shape, tokens), point(probeClose, shape, tokens))
		}
	}
	for _, requests := range s.requests {
		all = append(all, point(probeLive, shapes[0], s.layers, requests))
	}
	for _, requests := range s.loading {
		all = append(all, point(probeLiveOffload, shapes[0], s.layers, requests)) // the same without loads
		for _, room := range liveRooms {
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
		{probeLiveDense, probeLiveHeld, probeLiveLookup, probeLiveHeldPSA, probeLiveLookupPSA},
		{probeLiveUnsplit},
	} {
		for _, shape := range shapes {
			for _, probe := range probes {
				all = append(all, leavingServer(probe, shape, layers)...)
			}
		}
	}
	return all
}

// leavingServer are the points of one server, that of a probe.
func leavingServer(probe, shape string, layers int64) (all []Point) {
	kind := kindOf(probe)
	most := leavingMost(shape)
	for _, n := range leavingBatches {
		if n > most {
			continue
		}
		if !kind.psa {
			all = append(all, point(probe, shape, layers, n))
		} else if rounds := roundsOf(shape, layers, n); rounds > 0 {
			all = append(all, point(probe, shape, layers, n, rounds))
		}
	}
	if probe == probeLiveUnsplit {
		all = append(all, point(probeLiveFreed, shape, layers, most))
	}
	return all
}

// leavingBatches are the numbers of requests whose steps are points.
var leavingBatches = []int64{16, 12, 8, 6, 4, 3, 2, 1}

// roundsOf are the microbatches of a layer's longest list in PSA's servers of a shape, in
// steps of some requests: the same whoever looks lists up.
func roundsOf(shape string, layers, requests int64) int64 {
	key := leavingKey{shape: shape, layers: layers}
	if known, ok := meansKnown.Load(key); ok {
		return known.(map[int64]int64)[requests]
	}
	means := map[int64]int64{}
	if c, err := newServerCase(shape, layers, leavingKind{psa: true}); err == nil {
		if m, err := c.rounds(); err == nil {
			means = m
		}
	}
	meansKnown.Store(key, means)
	return means[requests]
}

var meansKnown sync.Map // leavingKey to a layer's rounds by requests

// liveRooms are room for selected blocks in servers that load, of what one step selects.
var liveRooms = []float64{1.5, 3.5}

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
	c := newLiveCase(&model, false, int(requests))
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
