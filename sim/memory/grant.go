package memory

import "github.com/sparseserve/sparseserve/sim/prefix"

// Grant is the KV memory that one request holds. Its zero value holds nothing.
type Grant struct {
	Cached int // prompt tokens that the trace declares as cached, of a Pool that is Unshared
	// For hot buffers (Hot). Of Blocks, Hot are in HBM, including the hot buffer. Gone is the number
	// of leading blocks that have left HBM one by one. Settled reports that the prefill has ended,
	// Kept that blocks leave HBM one by one.
	Blocks, Hot, Gone int64
	Settled, Kept     bool
	Table             *Table
}

// Table holds a request's text and the blocks of its KV. A block of a Pool holds BlockTokens tokens
// in all layers, or in the layers that WindowLayers says.
type Table struct {
	own    uint64 // number of its request
	pieces []prefix.Piece
	blocks []int32      // in text order
	full   int          // number of leading blocks in the index, or being saved with Pool.Late
	chain  prefix.Chain // chain of pieces, at the first token not in the index

	written int // number of the last of its blocks in below.kept; 0: none

	match []int32 // blocks found by Match
	at    uint64  // pool version of match

	stored int      // prompt tokens that the trace declares to be in DRAM
	chunks []uint64 // chunks below HBM that continue the match
	load   Load     // tokens to load
	loaded Load     // tokens loaded since the table was last empty

	branch branch // position in a Radix tree
	parts  parts  // further blocks, where layers have windows

	readers reading
}

// Reset sets the text of an empty table for a new request with prompt and output tokens. The trace
// gives given tokens of known content, or nil. Content that no other request can share is named by
// own.
//
// If a prompt is truncated, its middle is removed, so only its first half can be shared.
func (t *Table) Reset(content *prefix.Content, given, prompt, output int, own uint64) {
	t.pieces = t.pieces[:0]
	t.empty()
	t.match, t.at = t.match[:0], 0
	t.stored, t.own, t.branch = 0, own, branch{keys: t.branch.keys[:0]}
	common, answer := prompt, prefix.Mix(own, 1)
	if prompt < given {
		common = prompt / 2
	}
	rest := prompt
	if content != nil {
		for _, p := range content.Prompt {
			n := min(p.Tokens, common-(prompt-rest))
			if n <= 0 {
				break
			}
			t.pieces = append(t.pieces, prefix.Piece{ID: p.ID, Tokens: n})
			rest -= n
		}
		if content.Answer != 0 {
			answer = content.Answer
		}
	}
	if rest > 0 {
		t.pieces = append(t.pieces, prefix.Piece{ID: prefix.Mix(own, 2), Tokens: rest})
	}
	t.pieces = append(t.pieces, prefix.Piece{ID: answer, Tokens: output})
	t.chain = prefix.NewChain(t.pieces)
}

// empty forgets the blocks of a table whose text stays.
func (t *Table) empty() {
	t.blocks, t.full, t.written, t.loaded = t.blocks[:0], 0, 0, Load{}
	t.parts = parts{windowed: t.parts.windowed[:0]}
}

// Stored declares the first tokens of a new request's prompt to be in DRAM, under private keys.
func (t *Table) Stored(tokens int) { t.stored = tokens }

// Loaded returns the tokens that the request has loaded from below HBM since its prefill began.
func (t *Table) Loaded() Load { return t.loaded }

// Holds reports whether the request holds blocks.
func (t *Table) Holds() bool { return t != nil && len(t.blocks) > 0 }

// Blocks returns the pool's numbers of the table's blocks. It is valid until the table changes. A
// number is unique while its block is held.
func (t *Table) Blocks() []int32 { return t.blocks }

// Text returns the pieces of the prompt or, with all, of the prompt and the output. The output is
// the last piece.
func (t *Table) Text(all bool) []prefix.Piece {
	if all {
		return t.pieces
	}
	return t.pieces[:len(t.pieces)-1]
}
