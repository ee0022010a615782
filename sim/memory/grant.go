package memory

import "github.com/sparseserve/sparseserve/sim/prefix"

// Grant is the KV memory that one request holds, and the request's text. Its zero value holds
// nothing. A block of a Pool holds BlockTokens tokens in all layers, or in the layers that
// WindowLayers says.
type Grant struct {
	Cached int // prompt tokens that the trace declares as cached, of a Pool that is Unshared

	buffer // of a Hot

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
	loaded Load     // tokens loaded since the grant was last empty

	branch branch // position in a Radix tree
	parts  parts  // further blocks, where layers have windows

	readers reading
}

// buffer is the HBM of a grant with a hot buffer. Of all blocks, hot are in HBM, including the hot
// buffer. gone is the number of leading blocks that have left HBM one by one. settled reports that
// the prefill has ended, kept that blocks leave HBM one by one.
type buffer struct {
	all, hot, gone int64
	settled, kept  bool
}

// Reset sets the text of an empty grant for a new request with prompt and output tokens. The trace
// gives given tokens of known content, or nil. Content that no other request can share is named by
// own.
//
// If a prompt is truncated, its middle is removed, so only its first half can be shared.
func (g *Grant) Reset(content *prefix.Content, given, prompt, output int, own uint64) {
	g.pieces = g.pieces[:0]
	g.empty()
	g.match, g.at = g.match[:0], 0
	g.stored, g.own, g.branch = 0, own, branch{keys: g.branch.keys[:0]}
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
			g.pieces = append(g.pieces, prefix.Piece{ID: p.ID, Tokens: n})
			rest -= n
		}
		if content.Answer != 0 {
			answer = content.Answer
		}
	}
	if rest > 0 {
		g.pieces = append(g.pieces, prefix.Piece{ID: prefix.Mix(own, 2), Tokens: rest})
	}
	g.pieces = append(g.pieces, prefix.Piece{ID: answer, Tokens: output})
	g.chain = prefix.NewChain(g.pieces)
}

// empty forgets the blocks of a grant whose text stays.
func (g *Grant) empty() {
	g.blocks, g.full, g.written, g.loaded = g.blocks[:0], 0, 0, Load{}
	g.parts = parts{windowed: g.parts.windowed[:0]}
}

// Stored declares the first tokens of a new request's prompt to be in DRAM, under private keys.
func (g *Grant) Stored(tokens int) { g.stored = tokens }

// Loaded returns the tokens that the request has loaded from below HBM since its prefill began.
func (g *Grant) Loaded() Load { return g.loaded }

// Holds reports whether the request holds blocks.
func (g *Grant) Holds() bool { return len(g.blocks) > 0 }

// Blocks returns the pool's numbers of the grant's blocks. It is valid until the grant changes. A
// number is unique while its block is held.
func (g *Grant) Blocks() []int32 { return g.blocks }

// Text returns the pieces of the prompt or, with all, of the prompt and the output. The output is
// the last piece.
func (g *Grant) Text(all bool) []prefix.Piece {
	if all {
		return g.pieces
	}
	return g.pieces[:len(g.pieces)-1]
}
