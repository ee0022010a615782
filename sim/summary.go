package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// Stats summarises one distribution.
type Stats struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
}

// StatNames are what Stats.Of knows.
var StatNames = []string{"mean", "p50", "p90", "p95", "p99"}

// Of returns a statistic by name; it panics on a name that is not of StatNames.
func (s Stats) Of(name string) float64 {
	switch name {
	case "mean":
		return s.Mean
	case "p50":
		return s.P50
	case "p90":
		return s.P90
	case "p95":
		return s.P95
	case "p99":
		return s.P99
	}
	panic(fmt.Sprintf("sim: no statistic %q", name))
}

// Summary is the outcome of one run, as --json prints it. Times are in seconds.
// blocks_loaded_per_step and hit_ratio are 0 for systems that do not offload.
type Summary struct {
	Name        string  `json:"name"`
	System      string  `json:"system"`
	Model       string  `json:"model"`
	GPU         string  `json:"gpu"`
	Seed        uint64  `json:"seed"`
	Rate        float64 `json:"rate"`
	Concurrency int     `json:"concurrency,omitempty"` // clients of a closed loop, which has no rate
	Requests    int     `json:"requests"`
	Completed   int     `json:"completed"`
	Rejected    int     `json:"rejected"`
	Truncated   int     `json:"truncated,omitempty"` // prompts, of requests that were not rejected
	Preempted   int     `json:"preempted"`
	// RecomputedTokens had KV that a preemption lost, and were computed again; RecomputedShare of the
	// steps' time went to that.
	RecomputedTokens int64   `json:"recomputed_tokens,omitempty"`
	RecomputedShare  float64 `json:"recomputed_share,omitempty"`
	Replicas         int     `json:"replicas,omitempty"` // of a fleet
	Router           string  `json:"router,omitempty"`   // that shared the requests among them
	// times that a request began anew when its replica failed
	Retried int `json:"retried,omitempty"`
	// Stranded is the requests for which no replica of a fleet was up for some time.
	Stranded   int     `json:"waited_for_replica,omitempty"`
	SimulatedS float64 `json:"simulated_s"`
	Steps      int64   `json:"steps"`

	// ServedShare is of the requests that were served or rejected. The figures below are of those
	// served: with a share below one they say nothing about the rest.
	ServedShare float64 `json:"served_share"`
	// GoodShare is the share, of the same requests, that met every bound of the service level
	// for requests, each by itself; nil where it has none.
	GoodShare *float64 `json:"good_share,omitempty"`

	TTFT Stats `json:"ttft_s"`
	TBT  Stats `json:"tbt_s"` // between tokens of one request, over all tokens
	// mean TBT of a request, over requests of two tokens and more
	TPOT       Stats `json:"tpot_s"`
	E2E        Stats `json:"e2e_s"`         // from arrival to the last token
	QueueDelay Stats `json:"queue_delay_s"` // from arrival to the first step

	// RequestThroughput is requests/s that were served, RequestGoodput those that met every bound
	// of the service level, each by itself; nil where it has none.
	RequestThroughput float64  `json:"request_throughput"`
	RequestGoodput    *float64 `json:"request_goodput,omitempty"`

	// input: prompts of requests that were served
	PromptTokS          float64 `json:"prompt_tok_s"`
	ThroughputTokS      float64 `json:"throughput_tok_s"` // output
	TotalTokS           float64 `json:"total_tok_s"`      // both
	BatchMean           float64 `json:"batch_mean"`
	BlocksLoadedPerStep float64 `json:"blocks_loaded_per_step"`
	HitRatio            float64 `json:"hit_ratio"`
	H2DBytes            int64   `json:"h2d_bytes"`
	D2HBytes            int64   `json:"d2h_bytes"`
	Uses
	// PrefixCache is of systems that have one.
	PrefixCache  *PrefixStats  `json:"prefix_cache,omitempty"`
	ReplicaLoads []ReplicaLoad `json:"replica_load,omitempty"` // of each replica
	// ProgressiveStats is of runs whose attention is progressive.
	*ProgressiveStats

	// PhaseS is where the time went, seconds over all steps.
	PhaseS map[string]float64 `json:"phase_s"`
	SLO    string             `json:"slo"` // in words
	// SLOMet is nil where the run ended early; files of earlier versions have false there.
	SLOMet *bool `json:"slo_met,omitempty"`
	// SLOMissed names what of the service level the run missed.
	SLOMissed []string       `json:"slo_missed,omitempty"`
	Warnings  []warn.Warning `json:"warnings"`

	// Paced is the run with other step times, of one near a limit of its servers.
	Paced []Paced `json:"with_step_times,omitempty"`

	// Window is what the figures are of, where a part of the run is left out.
	Window *Window `json:"window,omitempty"`

	// RecallProxy is of runs that ask for it: a proxy of accuracy, not accuracy.
	RecallProxy *RecallProxy `json:"recall_proxy,omitempty"`

	// Interrupted says why the run ended early, if it did: the figures are of what ran until
	// then.
	Interrupted string `json:"interrupted,omitempty"`
	// Reach is of the whole run, and kept in no file; nil where it is not known.
	Reach *Reach `json:"-"`
	// Live is of runs on a device that computes.
	Live *LiveStats `json:"live,omitempty"`
}

// UnsplitPhase is the key of Summary.PhaseS of the time of steps that were not split into phases.
const UnsplitPhase = "unsplit"

// Lived adds what a run did on a device that computes. It says of its steps how much was not split
// into phases, 0 too: without that, nothing says that the phases are those of all steps.
func (s *Summary) Lived(l LiveStats) {
	s.Live = &l
	if _, ok := s.PhaseS[UnsplitPhase]; !ok && s.PhaseS != nil {
		s.PhaseS[UnsplitPhase] = 0
	}
}

// RejectedShare returns the share of the requests that ended by being rejected.
func (s *Summary) RejectedShare() float64 {
	if s.Rejected == 0 {
		return 0
	}
	return float64(s.Rejected) / float64(s.Completed+s.Rejected)
}

// QueueGrows reports whether requests waited longer and longer.
func (s *Summary) QueueGrows() bool {
	return warn.Has(s.Warnings, warn.UnstableQueue, warn.WaitsGrow)
}

func (s *Summary) warn(w warn.Warning) { s.Warnings = append(s.Warnings, w) }

// MetSLO says whether the run met its service level, as far as that is known: it is not of a run
// that ended early.
func (s *Summary) MetSLO() (met, known bool) {
	if s.SLOMet == nil || s.Interrupted != "" {
		return false, false
	}
	return *s.SLOMet, true
}

// Paced is what a run becomes where each step takes a factor of its time.
type Paced struct {
	StepTime float64 `json:"factor"`
	TTFT     Stats   `json:"ttft_s"`
	TBT      Stats   `json:"tbt_s"`
	SLOMet   *bool   `json:"slo_met,omitempty"`
}

// ProgressiveStats is what progressive attention (PSA) did.
type ProgressiveStats struct {
	RoundsPerLayer float64 `json:"rounds_per_layer"` // mean, over layers of steps that decode
	BlocksAhead    int64   `json:"blocks_ahead"`     // loaded for rounds that never came
}

// LiveStats is what the host of a real device did and waited for. Times are seconds over all
// steps.
type LiveStats struct {
	BlocksLoaded int64 `json:"blocks_loaded"` // by the device's count
	BlocksSaved  int64 `json:"blocks_saved"`
	Rounds       int64 `json:"rounds,omitempty"`       // of progressive attention, over all layers
	BlocksAhead  int64 `json:"blocks_ahead,omitempty"` // of the loaded, for rounds that never came

	// Of hot buffers, by the device's count: a row is a token's in one layer.
	RowsSelected int64 `json:"rows_selected,omitempty"` // by decodes, or of all KV in HBM
	RowsLoaded   int64 `json:"rows_loaded,omitempty"`   // misses
	RowsSaved    int64 `json:"rows_saved,omitempty"`

	RoundTrips        int64   `json:"round_trips"` // layers in which the host waited for a selection
	RoundTripsPerStep float64 `json:"round_trips_per_step"`
	RoundTripS        float64 `json:"round_trip_s"` // that it waited, the GPU at work

	UploadsPerLayer   float64 `json:"uploads_per_layer"`    // copies of lists and addresses to the GPU
	UploadKiBPerLayer float64 `json:"upload_kib_per_layer"` // in all of them
	CallsPerLayer     float64 `json:"calls_per_layer"`      // that put work on the compute stream

	// hits, misses and evictions of what was selected, and its lists of slots
	LookupS              float64 `json:"lookup_s"`
	ListsS               float64 `json:"lists_s"`    // the rest before attention: tables of prefills
	PlanningS            float64 `json:"planning_s"` // between steps
	BookkeepingMSPerStep float64 `json:"bookkeeping_ms_per_step"`
	BookkeepingShare     float64 `json:"bookkeeping_share"` // lookup and lists, of the steps' time

	SaveWaitS float64 `json:"save_wait_s"` // computation waited for room in the save buffer
	GrowingS  float64 `json:"growing_s"`   // pinning and allocating memory; part of no step
}
