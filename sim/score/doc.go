// Package score is the attention-score process. It generates the scores from which block
// selection picks, in place of a model's attention.
//
// process.go has the parameters and the criticality of blocks, weights.go the attention of
// blocks, tokens.go the tokens of a page, and critical.go single scores on demand.
package score
