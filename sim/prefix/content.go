package prefix

// Piece is a run of tokens of known content: the first Tokens tokens of the text named ID. Equal
// names are equal texts.
type Piece struct {
	ID     uint64
	Tokens int
}

// Content is what a request's prompt contains, in order, and the name of its output's text, which
// later prompts may contain; 0: none does. It does not change once made.
type Content struct {
	Prompt []Piece
	Answer uint64
}

// Chain names what a prompt's prefixes contain: two prefixes have the same key if and, but for
// collisions of 64 bits, only if they have the same pieces, of the same lengths, and end at the
// same token.
type Chain struct {
	pieces []Piece
	key    uint64 // of all pieces before the current one
	start  int    // token at which the current piece starts
}

// NewChain returns the chain of a prompt's pieces.
func NewChain(pieces []Piece) Chain { return Chain{pieces: pieces, key: 1} }

// Key returns the key of the first tokens of the prompt, and false beyond its known content. It is
// to be asked with growing numbers of tokens, 1 at least.
func (c *Chain) Key(tokens int) (uint64, bool) {
	for len(c.pieces) > 0 && tokens > c.start+c.pieces[0].Tokens {
		p := c.pieces[0]
		c.key = mix(mix(c.key, p.ID), uint64(p.Tokens))
		c.start += p.Tokens
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		return 0, false
	}
	return mix(mix(c.key, c.pieces[0].ID), uint64(tokens-c.start)), true
}

// mix is one round of SplitMix64's finaliser over both (Steele et al., OOPSLA 2014).
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
