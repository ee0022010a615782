// Package calibrate measures a GPU box and writes what it found as a hardware
// profile, which the modelled device of package hw reads.
//
// Reading order, following one measurement:
//
//   - point.go: a Probe is one kind of measurement, a Point one size of it.
//   - plan.go, plan_*.go: which points are measured, in which order.
//   - sample.go: how often a point is repeated; median.go: the confidence
//     interval that decides it; visits.go: points that are measured again later,
//     because what disturbs a CPU lasts.
//   - bench.go: what a machine must do for a point. rig.go and rig_*.go do it
//     on a GPU: each sets a point up, verifies one result, and times it.
//   - live_case.go, live_leaving.go: the servers whose steps the live probes time.
//   - samples.go, journal.go: the samples as CSV, kept while measuring, so that
//     an interrupted run resumes.
//   - fit.go: splits, solvers; fit_*.go: cost models of a kind, from medians to
//     figures of the profile, the forms as package hw has them; quality.go
//     prices the points that no fit has seen with the finished profile.
//   - card.go: what is known of the card without measuring; profile.go puts
//     the profile together.
//   - draw.go, draw_*.go: a picture for each model, measured against fitted;
//     paper.go: Figs. 4, 14b and 16b of the SparseServe paper from the same samples.
//   - refuse.go: why a machine cannot be calibrated; run.go ties it together, and
//     goes on without a probe that fails.
//
// Times are seconds in float64, sizes are bytes, blocks and tokens in int64.
package calibrate
