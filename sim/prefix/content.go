package prefix

// Piece is a run of tokens of known content: the first Tokens tokens of the text named ID. Equal
// names are equal texts.
type Piece struct {
	ID     uint64
	Tokens int
}

// Content lists the pieces of a request's prompt, in order, and the ID of its output's text. Later
// prompts may contain that text; 0: none does. Content is immutable.
type Content struct {
	Prompt []Piece
	Answer uint64
}

// Chain computes the keys of a prompt's prefixes. Two prefixes have the same key if and, except for
// 64-bit collisions, only if they consist of the same pieces with the same lengths and end at the
// same token.
type Chain struct {
	pieces []Piece
	key    uint64 // key of all pieces before the current one
	start  int    // token at which the current piece starts
}

// NewChain returns the chain of a prompt's pieces.
func NewChain(pieces []Piece) Chain { return Chain{pieces: pieces, key: 1} }

// Key returns the key of the prompt's first tokens. It returns false beyond the known content.
// Calls must use increasing numbers of tokens, at least 1.
func (c *Chain) Key(tokens int) (uint64, bool) {
	for len(c.pieces) > 0 && tokens > c.start+c.pieces[0].Tokens {
		p := c.pieces[0]
		c.key = Mix(Mix(c.key, p.ID), uint64(p.Tokens))
		c.start += p.Tokens
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		return 0, false
	}
	return Mix(Mix(c.key, c.pieces[0].ID), uint64(tokens-c.start)), true
}

// Mix combines both values with one round of SplitMix64's finaliser (Steele et al., OOPSLA 2014).
func Mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
