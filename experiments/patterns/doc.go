// Package patterns finds which sparse prefill pattern fits a head best at equal cost, as
// MInference's Algorithm 1 does: Space (space.go) sizes the candidates of its Table 6 to one
// cost in the kernel, by a card's profile; Search (search.go) takes for each head the candidate
// whose attention output (attend.go) is nearest to that of dense attention, over masks that are
// estimated as the kernels estimate them (mask.go). Heads come from a model (model.go), as the
// reference or a live device computes them, or are synthetic ones with a planted pattern
// (planted.go), by which the search is judged.
package patterns
