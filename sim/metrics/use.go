package metrics

import "github.com/sparseserve/sparseserve/sim/des"

// Use is the utilisation of a resource. Mean is over the run, with zero use between steps. Peak is
// the largest value of a step.
type Use struct {
	Mean float64 `json:"mean"`
	Peak float64 `json:"peak"`
}

// Uses holds the utilisation of the machine's resources in a run.
type Uses struct {
	// HBMUse is the fraction of the card's HBM in use, including weights, runtime and activations;
	// nil if the HBM of the card is unknown. HBMKVUse is the fraction in use of the HBM for KV.
	HBMUse   *Use `json:"hbm_use,omitempty"`
	HBMKVUse *Use `json:"hbm_kv_use,omitempty"`
	DRAMUse  *Use `json:"dram_use,omitempty"` // fraction of system.dram_gib; with offloading
	// Fraction of time in which each part was busy; nil if the device does not measure it.
	GPUUse *Use `json:"gpu_use,omitempty"`
	H2DUse *Use `json:"h2d_use,omitempty"`
	D2HUse *Use `json:"d2h_use,omitempty"`
	// BatchFull is the fraction of time in which a server ran at least 95 % of its max_requests.
	// KVFull is the fraction of time in which the KV memory was full to 95 % or a request waited for
	// memory.
	BatchFull float64 `json:"batch_full_share,omitempty"`
	KVFull    float64 `json:"kv_full_share,omitempty"`
}

// uses accumulates resource use over steps.
type uses struct {
	hbm, dram     held
	batch, room   held // 1 at the limit
	gpu, h2d, d2h worked
	any           bool
	before        des.Time // end of the last step, if any
}

// held integrates the use of a memory over time.
type held struct {
	byteSeconds float64
	peak        int64
}

func (h *held) add(bytes int64, seconds float64) {
	h.byteSeconds += float64(bytes) * seconds
	h.peak = max(h.peak, bytes)
}

// of returns the used share of the capacity. The fixed bytes are always in use.
func (h *held) of(capacity, fixed int64, seconds float64) *Use {
	if capacity <= 0 || seconds <= 0 {
		return nil
	}
	return &Use{
		Mean: (float64(fixed) + h.byteSeconds/seconds) / float64(capacity),
		Peak: float64(fixed+h.peak) / float64(capacity),
	}
}

// worked accumulates the busy time of a part of the machine.
type worked struct {
	busy float64 // nanoseconds
	peak float64
}

// add adds the given part of an interval's busy time.
func (w *worked) add(busy, interval des.Time, part float64) {
	if busy > 0 && interval > 0 {
		w.busy += float64(busy) * part
		w.peak = max(w.peak, float64(busy)/float64(interval))
	}
}

func (w *worked) of(seconds float64) *Use {
	return &Use{Mean: w.busy / float64(des.Second) / seconds, Peak: w.peak}
}

// within adds the use of a step between two times. GPU and loads work during the step. Saves work
// since the end of the previous step.
func (u *uses) within(r *Step, from, to des.Time) {
	begin, end := u.before, r.Start+r.Timing.Elapsed
	if !u.any {
		begin, u.any = r.Start, true
	}
	u.before = end
	if end <= from || begin >= to {
		return
	}
	inside := overlap(r.Start, end, from, to)
	seconds := inside * float64(r.Timing.Elapsed) / float64(des.Second)
	u.hbm.add(r.HBMBytes, seconds)
	u.dram.add(r.DRAMBytes, seconds)
	if r.BatchFull {
		u.batch.add(1, seconds)
	}
	if r.KVFull {
		u.room.add(1, seconds)
	}
	u.gpu.add(r.Timing.Busy.GPU, r.Timing.Elapsed, inside)
	u.h2d.add(r.Timing.Busy.H2D, r.Timing.Elapsed, inside)
	u.d2h.add(r.Timing.Busy.D2H, end-begin, overlap(begin, end, from, to))
}

// overlap returns the share of an interval that is within bounds.
func overlap(begin, end, from, to des.Time) float64 {
	inside := min(end, to) - max(begin, from)
	switch {
	case inside <= 0:
		return 0
	case inside == end-begin:
		return 1
	}
	return inside.Seconds() / (end - begin).Seconds()
}

// of returns the utilisation over a run of the given duration in seconds.
func (u *uses) of(a *About, seconds float64) (out Uses) {
	if seconds <= 0 {
		return out
	}
	out.HBMUse = u.hbm.of(a.CardBytes, a.FixedBytes, seconds)
	out.HBMKVUse = u.hbm.of(a.KVBytes, 0, seconds)
	out.BatchFull, out.KVFull = u.batch.byteSeconds/seconds, u.room.byteSeconds/seconds
	if a.Offload {
		out.DRAMUse = u.dram.of(a.DRAMBytes, 0, seconds)
	}
	if u.gpu.busy > 0 {
		out.GPUUse = u.gpu.of(seconds)
		if a.Offload || a.Tiers {
			out.H2DUse, out.D2HUse = u.h2d.of(seconds), u.d2h.of(seconds)
		}
	}
	return out
}
