// Package calibrate measures a machine with a GPU and writes the result as a hardware profile,
// which the modelled device of hw/cost reads.
//
// Three tables say what is measured and fitted: plan.go the sizes of each kind of measurement
// (probe), probes.go how each is set up and timed, costs.go the fits. COST.go has the fit of a
// cost; law.go declares the costs that are sums of terms. The same file or COST_setup.go prepares
// the measurement on a GPU. To follow FlashH2D read cuda/flash_h2d.cu, calibrate/transfer.go and
// hw/cost/transfer.go. A new cost is a kernel, its lines in the tables with what they name, and its
// price in hw/cost.
//
// What costs share, following one measurement:
//
//   - point.go: a Probe is one kind of measurement, a Point one size of it.
//   - sample.go repeats a point until the interval of its median (median.go) is narrow;
//     run.go goes over all.
//   - bench.go is what a machine must do for a point; gpu_bench.go does it on a GPU,
//     gpu_run.go with one error that stays, memory of host_pool.go and checks of
//     gpu_check.go. transfer_setup.go and clock_setup.go set up what several points share.
//   - samples.go, origin.go, journal.go: the samples as CSV, kept while measuring, so that an
//     interrupted run resumes.
//   - fit.go splits points into those fitted and those held out, solve.go solves, resolution.go
//     is a measurement's uncertainty, quality.go prices the points held out with the finished
//     profile, profile.go puts it together, card.go adds what is known of the card.
//   - fits.go, fits_text.go: the table of measured and fitted that pictures are drawn from.
//   - machine.go, refuse.go: the box, and why one cannot be calibrated.
//
// Times are seconds in float64, sizes are bytes, blocks and tokens in int64.
package calibrate
