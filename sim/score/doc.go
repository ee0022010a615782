// Package score is the attention-score process: it gives the scores that block selection picks
// from, in place of a model's attention.
//
// process.go has the parameters and the criticality of blocks, weights.go the attention that blocks
// hold, tokens.go the tokens of a page, critical.go single scores on demand.
package score
