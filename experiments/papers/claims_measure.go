package papers

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// measureKey names one number of a claim.
type measureKey struct {
	id    string
	index int
}

// measurement is how one number is read off the results.
type measurement struct {
	from    []string // experiments
	bound   string   // "", below, above
	measure func(*results) (float64, error)
	// plain is the number without the paper's mechanism; nil where its kind says it (Null).
	plain func(*results) (float64, error)
}

const (
	below = "below"
	above = "above"
)

// Quantities of a run.

func tokenThroughput(r *sweptRun) float64  { return r.ThroughputTokS }
func meanTTFT(r *sweptRun) float64         { return r.TTFT.Mean }
func meanTBT(r *sweptRun) float64          { return r.TBT.Mean }
func loadsPerStep(r *sweptRun) float64     { return r.BlocksLoadedPerStep }
func loadTimePerStep(r *sweptRun) float64  { return r.PhaseS["load_stall"] / float64(r.Steps) }
func prefillAttention(r *sweptRun) float64 { return r.PhaseS["prefill_attention"] }

// loadShare is the share of the steps' time spent waiting for loads.
func loadShare(r *sweptRun) float64 {
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(r.PhaseS)) {
		total += r.PhaseS[name]
	}
	return r.PhaseS["load_stall"] / total
}

// measurements says how every number is measured, experiment by experiment.
func measurements() map[measureKey]measurement {
	all := map[measureKey]measurement{}
	add := func(id string, index int, bound string, from string, f func(*results) (float64, error)) {
		all[measureKey{id, index}] = measurement{from: []string{from}, bound: bound, measure: f}
	}
	batch := func(n int) filter { return with("system.max_requests", n) }
	add("ss-fig1-up", 0, "", "fig01", ratioOf("fig01", batch(6), batch(2), tokenThroughput))
	add("ss-fig1-down", 0, "", "fig01", ratioOf("fig01", batch(6), batch(12), tokenThroughput))
	add("ss-fig1-loads", 0, "", "fig01", ratioOf("fig01", batch(12), batch(6), loadsPerStep))

	addBandwidths(all)

	add("ss-fig8-w12", 0, "", "fig08", overlapGain(1, 12))
	add("ss-fig8-w16", 0, "", "fig08", overlapGain(12, 16))

	add("ss-fig10-ttft", 0, "", "fig10a",
		ratioOf("fig10a", system("vllm").and(atRate(0.125)),
			system("sparseserve").and(atRate(0.125)), meanTTFT))
	for _, m := range []struct{ id, from string }{{"lwm", "fig10a"}, {"llama", "fig10b"}} {
		for _, s := range []string{"vllm", "s", "so"} {
			other := s
			if s != "vllm" {
				other = "vllm-" + s
			}
			add("ss-fig11-"+m.id+"-"+s, 0, "", m.from, func(r *results) (float64, error) {
				return r.largestRatio(m.from, system("sparseserve"), system(other), tokenThroughput,
					math.Inf(1))
			})
		}
	}
	all[measureKey{"ss-fig12-tbt", 0}] = measurement{from: []string{"fig10a", "fig10b"},
		bound: below, measure: worstTBT}

	memcpy, flash := with("system.load_engine", "memcpy"), with("system.load_engine", "flash")
	add("ss-fig14a-share", 0, "", "fig14a", func(r *results) (float64, error) {
		return r.mean("fig14a", memcpy.and(batch(8)), loadShare)
	})
	add("ss-fig14a-speedup", 0, "", "fig14a", func(r *results) (float64, error) {
		best := 0.0
		for _, n := range []int{4, 6, 8} {
			v, err := r.ratio("fig14a", memcpy.and(batch(n)), flash.and(batch(n)), loadTimePerStep)
			if err != nil {
				return 0, err
			}
			best = math.Max(best, v)
		}
		return best, nil
	})
	for i, engine := range []string{"memcpy", "gpu", "flash"} {
		add("ss-fig14b", i, "", "fig14b", ratioOf("fig14b", with("system.save_engine", engine),
			system("vllm-s"), meanTTFT))
	}

	control, free := with("system.batch_control", true), with("system.batch_control", false)
	add("ss-fig15-drop", 0, "", "fig15", func(r *results) (float64, error) {
		kept, err := r.ratio("fig15", free.and(atRate(0.3)), free.and(atRate(0.25)), tokenThroughput)
		return 1 - kept, err
	})
	add("ss-fig15-loads", 0, "", "fig15",
		ratioOf("fig15", free.and(atRate(0.3)), control.and(atRate(0.3)), loadsPerStep))

	chunked, layer := with("system.prefill", "chunked"), with("system.prefill", "layer")
	add("ss-fig16a", 0, "", "fig16a", func(r *results) (float64, error) {
		return r.largestRatio("fig16a", chunked, layer, meanTTFT, math.Inf(1))
	})
	plain := with("system.prefill", "plain")
	add("ss-fig16b-chunked", 0, "", "fig16b",
		ratioOf("fig16b", chunked.and(with("system.chunk_tokens", 512)), plain, prefillAttention))
	add("ss-fig16b-layer", 0, "", "fig16b", ratioOf("fig16b", layer, plain, prefillAttention))
	addGoodput(all)
	addPSA(all)
	addMInference(all)
	return all
}

func ratioOf(name string, over, under filter, of func(*sweptRun) float64) func(*results) (
	float64, error) {
	return func(r *results) (float64, error) { return r.ratio(name, over, under, of) }
}

// worstTBT is the largest ratio of both models' mean TBT to vLLM's, up to the
// rates where the paper caps vLLM.
func worstTBT(r *results) (float64, error) {
	lwm, err := r.largestRatio("fig10a", system("sparseserve"), system("vllm"), meanTBT, 0.15)
	if err != nil {
		return 0, err
	}
	llama, err := r.largestRatio("fig10b", system("sparseserve"), system("vllm"), meanTBT, 0.25)
	return math.Max(lwm, llama), err
}

// addBandwidths adds Fig. 4. What the null model has in the place of FlashH2D and FlashD2H is one
// memcpy a block.
func addBandwidths(all map[measureKey]measurement) {
	add := func(id, bound string, measure, plain func(*results) (float64, error)) {
		all[measureKey{id, 0}] = measurement{[]string{"fig04"}, bound, measure, plain}
	}
	least, most := slices.Min[[]float64], slices.Max[[]float64]
	load, save := bandwidth("load", "memcpy", 32, most), bandwidth("save", "memcpy", 0, most)
	add("ss-fig4-h2d-memcpy", below, load, load)
	add("ss-fig4-d2h-memcpy", below, save, save)
	add("ss-fig4-h2d-flash", above, bandwidth("load", "flash", 0, least),
		bandwidth("load", "memcpy", 0, least))
	add("ss-fig4-d2h-flash", above, bandwidth("save", "flash", 0, least),
		bandwidth("save", "memcpy", 0, least))
}

// bandwidth is the least or largest of an engine over block sizes; tokens > 0 takes one size.
func bandwidth(direction, engine string, tokens int, pick func([]float64) float64) func(*results) (
	float64, error) {
	where := map[string]string{"direction": direction, "engine": engine}
	if tokens > 0 {
		where["block_tokens"] = strconv.Itoa(tokens)
	}
	return func(r *results) (float64, error) {
		rates, err := r.column("fig04", "gb_s", where)
		if err != nil {
			return 0, err
		}
		return pick(rates), nil
	}
}

// overlapGain is the overlap gained from one window to another, in points.
func overlapGain(from, to int) func(*results) (float64, error) {
	return func(r *results) (float64, error) {
		var percent [2]float64
		for i, window := range []int{from, to} {
			shares, err := r.column("fig08", "overlap", map[string]string{"window": strconv.Itoa(window)})
			if err != nil {
				return 0, err
			}
			sum := 0.0
			for _, s := range shares {
				sum += s
			}
			percent[i] = 100 * sum / float64(len(shares))
		}
		return percent[1] - percent[0], nil
	}
}
