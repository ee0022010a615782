// Package patterns finds the sparse prefill pattern that fits a head best at equal cost, as
// MInference's Algorithm 1 does. Space (space.go) scales the candidates of its Table 6 to equal
// kernel cost, by a card's profile. Search (search.go) selects for each head the candidate whose
// attention output (attend.go) is nearest to dense attention's output, over masks that are
// estimated as the kernels estimate them (mask.go). Heads come from a model (model.go), computed by
// the reference or a live device. Tests plant patterns in synthetic heads (planted_test.go).
package patterns
