package calibrate

import "slices"

// linearPoints are those of all shapes, the long ones last: they are visited again.
func linearPoints(s scale) []Point {
	var all, long []Point
	for _, shape := range s.matrices {
		for _, n := range s.tokens {
			if n < longLinears {
				all = append(all, point(probeLinears, shape, n))
			} else {
				long = append(long, point(probeLinears, shape, n))
			}
		}
	}
	return append(all, long...)
}

// longLinears are the tokens from which on linears are whole chunks, which most of
// prefill is, and run at the clock that the card can keep.
const longLinears = 2048

// clockTokens are a chunk's, and clockSizes those that prefill's linears are measured
// at with the clock high.
const clockTokens = 2048

var clockSizes = []int64{512, clockTokens}

// otherRests are the rests, in ms, of those that copies are not.
var otherRests = []int64{20, 80}

// restedLayers are longer than a card is known to keep its higher clock.
const restedLayers = 40

// clockPoints are linears before the card lowers its clock under them, and after a
// rest, and chunks and decodes under the lowered one.
func clockPoints(s scale) []Point {
	var all []Point
	for _, shape := range s.clocked {
		for _, n := range clockSizes {
			if n == clockTokens {
				for _, ms := range s.after {
					all = append(all, point(probeClock, shape, n, ms))
				}
			} else {
				all = append(all, point(probeClock, shape, n, s.after[0]))
			}
			for _, prefix := range s.chunkAfter {
				all = append(all, point(probeChunk, shape, n, prefix))
			}
		}
	}
	for _, shape := range s.clocked {
		for prompt := range int64(promptsInARow) {
			for i := range int64(promptChunks) {
				all = append(all, point(probePrompt, shape, clockTokens, i*clockTokens, prompt+1))
			}
		}
	}
	for _, ms := range s.rest {
		all = append(all, point(probeRested, s.clocked[0], clockTokens, ms, restedLayers))
		if slices.Contains(otherRests, ms) {
			all = append(all, point(probeRestedDense, s.clocked[0], clockTokens, ms, restedLayers))
		}
	}
	return all
}

// layerPoints are the rest of a layer.
func layerPoints(s scale) []Point {
	var all []Point
	for _, shape := range s.shapes {
		for _, n := range s.pointwise {
			all = append(all, point(probePointwise, shape, n))
		}
	}
	return all
}

// attentionPoints are prefill, decode and selection.
func attentionPoints(s scale, limits Limits) []Point {
	var all []Point
	for _, shape := range s.shapes {
		for _, q := range s.queries {
			for _, prefix := range s.prefixes {
				if q+prefix <= s.attended {
					all = append(all, point(probePrefill, shape, q, prefix))
				}
			}
		}
	}
	for _, shape := range s.shapes {
		m, err := shapeModel(shape)
		if err != nil {
			panic(err) // shapes are built in
		}
		most := min(limits.DeviceBytes, mostDeviceBytes) * 3 / 4 / m.LayerKVBytesPerToken() // tokens
		for _, batch := range s.batches {
			for _, context := range s.contexts {
				if batch*context <= most {
					all = append(all, point(probeDense, shape, batch, context))
				}
			}
			for _, budget := range s.budgets {
				if batch*budget <= most {
					all = append(all, point(probeSparse, shape, batch, budget), point(probePSA, shape, batch, budget, microbatch))
				}
			}
			for _, context := range s.selectFrom {
				all = append(all, point(probeSelect, shape, batch, context, selectBudget))
			}
		}
		for _, batch := range s.waves {
			for _, budget := range s.budgets {
				if budget == 1024 && batch < 8 || budget == selectBudget {
					all = append(all, point(probeSparse, shape, batch, budget))
				}
			}
		}
		for _, batch := range []int64{1, 8, 32} {
			for _, budget := range s.budgets {
				all = append(all, point(probePSALaunches, shape, batch, budget, microbatch))
			}
		}
		for _, batch := range s.few {
			for _, longest := range s.longest {
				all = append(all, point(probePSAUneven, shape, batch, longest, microbatch))
			}
		}
		for _, micro := range s.micro {
			for _, batch := range []int64{1, 8} {
				for _, budget := range s.budgets {
					all = append(all, point(probePSA, shape, batch, budget, micro))
				}
			}
		}
	}
	for _, batch := range []int64{1, 4, 16, 64} {
		for _, context := range []int64{4096, 32768} {
			all = append(all, point(probeDense, fewHeads, batch, context), point(probeSelect, fewHeads, batch, context, selectBudget))
		}
		for _, budget := range []int64{1024, 2048} {
			all = append(all, point(probeSparse, fewHeads, batch, budget), point(probePSA, fewHeads, batch, budget, microbatch))
		}
	}
	return all
}

// selectBudget is what is selected from every context, in tokens.
const selectBudget = 2048

// layersTimed are the layers of the prefill that saves run beside, as many as
// a 7B model has: nothing hides the last layer's saves.
const layersTimed = 32

// layersPoints are chunks of a prompt in some layers, saved by each engine.
func layersPoints(s scale) (all []Point) {
	for _, prefix := range s.layerPrefix {
		for _, probe := range []string{probeLayersNone, probeLayersMemcpy, probeLayersGPU} {
			all = append(all, point(probe, s.shapes[0], 2048, prefix, layersTimed))
		}
	}
	return all
}

// overlapPoints are compute with transfers beside it.
func overlapPoints(s scale, limits Limits) []Point {
	var all []Point
	// Up to 96 calls of one kind: a stream takes many more before a call has to wait for the GPU.
	for _, n := range [][2]int64{{64, 1}, {1, 64}, {16, 16}, {48, 48}} {
		for _, probe := range []string{probeCallsNone, probeCallsSave} {
			all = append(all, point(probe, "", n[0], n[1]))
		}
	}
	first, last := s.layerPrefix[0], s.layerPrefix[len(s.layerPrefix)-1]
	pools := []int64{basePool}
	if pool := s.besidePool(limits); pool > basePool {
		pools = append(pools, pool)
	}
	middle := s.layerPrefix[len(s.layerPrefix)/2]
	for _, pool := range pools {
		for _, prefix := range slices.Compact([]int64{first, middle, last}) { // the middle is held out
			all = append(all, point(probePrefillMemcpy, s.shapes[0], 2048, prefix, layersTimed, pool))
		}
	}
	// A layer segment of a whole prompt saves as much in fewer layers; held out too. Its
	// pages are 256 of 16 MiB.
	if pool := pools[len(pools)-1]; pool >= 4*basePool {
		for _, part := range []int64{2, 4} {
			all = append(all, point(probeLayersNone, s.shapes[0], 2048*part, 0, layersTimed/part), point(probePrefillMemcpy, s.shapes[0], 2048*part, 0, layersTimed/part, pool))
		}
	}
	return all
}
