package metrics

import (
	"slices"

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

// StatNames lists the statistics that Stats.Of accepts.
var StatNames = []string{"mean", "p50", "p90", "p95", "p99"}

// Of returns a statistic by name. It panics on a name that is not in StatNames.
func (s Stats) Of(name string) float64 {
	return [...]float64{s.Mean, s.P50, s.P90, s.P95, s.P99}[slices.Index(StatNames, name)]
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
	Concurrency int     `json:"concurrency,omitempty"` // clients of a closed loop; Rate is then 0
	Requests    int     `json:"requests"`
	Completed   int     `json:"completed"`
	Rejected    int     `json:"rejected"`
	Truncated   int     `json:"truncated,omitempty"` // truncated prompts of accepted requests
	Preempted   int     `json:"preempted"`
	// RecomputedTokens counts tokens whose KV a preemption dropped and a later step computed again.
	// RecomputedShare is the fraction of step time that this took.
	RecomputedTokens int64   `json:"recomputed_tokens,omitempty"`
	RecomputedShare  float64 `json:"recomputed_share,omitempty"`
	Replicas         int     `json:"replicas,omitempty"` // in the fleet
	Router           string  `json:"router,omitempty"`   // policy that assigns requests to replicas
	// restarts of requests because their replica failed
	Retried int `json:"retried,omitempty"`
	// Stranded counts requests that waited because every replica of the fleet was down.
	Stranded   int     `json:"waited_for_replica,omitempty"`
	SimulatedS float64 `json:"simulated_s"`
	Steps      int64   `json:"steps"`

	// ServedShare is served requests over served and rejected ones. The figures below cover served
	// requests only.
	ServedShare float64 `json:"served_share"`
	// GoodShare is requests that met every per-request bound of the SLO, over served and rejected
	// ones; nil without such a bound.
	GoodShare *float64 `json:"good_share,omitempty"`

	TTFT Stats `json:"ttft_s"`
	TBT  Stats `json:"tbt_s"` // between tokens of one request, over all tokens
	// mean TBT of a request, over requests of two tokens and more
	TPOT       Stats `json:"tpot_s"`
	E2E        Stats `json:"e2e_s"`         // from arrival to the last token
	QueueDelay Stats `json:"queue_delay_s"` // from arrival to the first step

	// RequestThroughput is served requests per second. RequestGoodput counts only requests that met
	// every per-request bound of the SLO; nil without such a bound.
	RequestThroughput float64  `json:"request_throughput"`
	RequestGoodput    *float64 `json:"request_goodput,omitempty"`

	// input: prompt tokens of served requests
	PromptTokS          float64 `json:"prompt_tok_s"`
	ThroughputTokS      float64 `json:"throughput_tok_s"` // output
	TotalTokS           float64 `json:"total_tok_s"`      // both
	BatchMean           float64 `json:"batch_mean"`
	BlocksLoadedPerStep float64 `json:"blocks_loaded_per_step"`
	HitRatio            float64 `json:"hit_ratio"`
	H2DBytes            int64   `json:"h2d_bytes"`
	D2HBytes            int64   `json:"d2h_bytes"`
	Uses
	// PrefixCache is nil for systems without a prefix cache.
	PrefixCache  *PrefixStats  `json:"prefix_cache,omitempty"`
	ReplicaLoads []ReplicaLoad `json:"replica_load,omitempty"` // one entry per replica
	// ProgressiveStats is nil unless attention is progressive.
	*ProgressiveStats

	// PhaseS maps each phase to its time, in seconds over all steps.
	PhaseS map[string]float64 `json:"phase_s"`
	SLO    string             `json:"slo"` // in words
	// SLOMet is nil if the run ended early.
	SLOMet *bool `json:"slo_met,omitempty"`
	// SLOMissed names the SLO bounds that the run missed.
	SLOMissed []string       `json:"slo_missed,omitempty"`
	Warnings  []warn.Warning `json:"warnings"`

	// Paced holds results with scaled step times, for a run near a server limit.
	Paced []Paced `json:"with_step_times,omitempty"`

	// Window is the measured part of the run; nil if the figures cover the whole run.
	Window *Window `json:"window,omitempty"`

	// RecallProxy is nil unless the run asked for it. It is a proxy of accuracy, not accuracy.
	RecallProxy *RecallProxy `json:"recall_proxy,omitempty"`

	// Interrupted is the reason why the run ended early, or empty. The figures then cover only the
	// part that ran.
	Interrupted string `json:"interrupted,omitempty"`
	// Live is nil unless the device computes.
	Live *LiveStats `json:"live,omitempty"`
}

// UnsplitPhase is the key in Summary.PhaseS for the time of steps that were not split into phases.
const UnsplitPhase = "unsplit"

// Lived adds the statistics of a device that computes. It always sets the UnsplitPhase entry, even
// to 0: the entry shows how much step time the phases do not cover.
func (s *Summary) Lived(l LiveStats) {
	s.Live = &l
	if _, ok := s.PhaseS[UnsplitPhase]; !ok && s.PhaseS != nil {
		s.PhaseS[UnsplitPhase] = 0
	}
}

// RejectedShare returns the share of finished requests that were rejected.
func (s *Summary) RejectedShare() float64 {
	if s.Rejected == 0 {
		return 0
	}
	return float64(s.Rejected) / float64(s.Completed+s.Rejected)
}

// QueueGrows reports whether queue delays kept growing.
func (s *Summary) QueueGrows() bool {
	return warn.Has(s.Warnings, warn.UnstableQueue, warn.WaitsGrow)
}

func (s *Summary) warn(w warn.Warning) { s.Warnings = append(s.Warnings, w) }

// MetSLO reports whether the run met its SLO. known is false if the run ended early.
func (s *Summary) MetSLO() (met, known bool) {
	if s.SLOMet == nil || s.Interrupted != "" {
		return false, false
	}
	return *s.SLOMet, true
}

// Paced is the result of a run whose step times are multiplied by StepTime.
type Paced struct {
	StepTime float64 `json:"factor"`
	TTFT     Stats   `json:"ttft_s"`
	TBT      Stats   `json:"tbt_s"`
	SLOMet   *bool   `json:"slo_met,omitempty"`
}

// ProgressiveStats counts the work of progressive attention (PSA).
type ProgressiveStats struct {
	RoundsPerLayer float64 `json:"rounds_per_layer"` // mean over all layers of steps with decodes
	BlocksAhead    int64   `json:"blocks_ahead"`     // loaded for rounds that did not run
}

// LiveStats counts work and waiting time of a real device's host. Times are in seconds over all
// steps.
type LiveStats struct {
	BlocksLoaded int64 `json:"blocks_loaded"` // as counted by the device
	BlocksSaved  int64 `json:"blocks_saved"`
	Rounds       int64 `json:"rounds,omitempty"`       // of progressive attention, over all layers
	BlocksAhead  int64 `json:"blocks_ahead,omitempty"` // loaded for rounds that did not run

	// Hot buffers, as counted by the device. A row is the KV of one token in one layer.
	RowsSelected int64 `json:"rows_selected,omitempty"` // selected by decodes
	RowsLoaded   int64 `json:"rows_loaded,omitempty"`   // misses
	RowsSaved    int64 `json:"rows_saved,omitempty"`

	RoundTrips        int64   `json:"round_trips"` // layers whose host part waited for a selection
	RoundTripsPerStep float64 `json:"round_trips_per_step"`
	RoundTripS        float64 `json:"round_trip_s"` // waiting time of the host while the GPU worked

	UploadsPerLayer   float64 `json:"uploads_per_layer"`    // copies of lists and addresses to the GPU
	UploadKiBPerLayer float64 `json:"upload_kib_per_layer"` // total size of these copies
	CallsPerLayer     float64 `json:"calls_per_layer"`      // calls on the compute stream

	// cache lookup of the selected blocks (hits, misses, evictions) and their slot lists
	LookupS              float64 `json:"lookup_s"`
	ListsS               float64 `json:"lists_s"`    // other lists before attention
	PlanningS            float64 `json:"planning_s"` // between steps
	BookkeepingMSPerStep float64 `json:"bookkeeping_ms_per_step"`
	BookkeepingShare     float64 `json:"bookkeeping_share"` // lookup and lists / step time

	SaveWaitS float64 `json:"save_wait_s"` // wait for room in the save buffer
	GrowingS  float64 `json:"growing_s"`   // pinning and allocating memory, outside of steps
}
