package prefix

// Grant is what one request holds of a server's memory for KV. Its zero value holds nothing.
type Grant struct {
	Blocks int64 // of all layers; counted where nothing is shared (kv.Budget)
	Cached int   // tokens of its prompt that are said to be cached, where nothing is shared
	// Of hot buffers (kv.Hot): of Blocks, those in HBM, its buffer included; the first blocks, that
	// have left HBM one by one; whether its prefill has ended, and whether blocks leave one by one.
	Hot, Gone     int64
	Settled, Kept bool
	Table         *Table
}

// Table is a request's text and the blocks that its KV is in, where prefixes are shared. A block
// of a Pool holds BlockTokens tokens in all layers.
type Table struct {
	own    uint64 // its request's number
	pieces []Piece
	blocks []int32 // in the order of the text
	full   int     // of them, the first, those that are in the index
	chain  Chain   // of the pieces, at the first token that is not

	written int   // of them, the first, up to the last that was to be written below HBM, where it was
	saving  int   // of them, the first, those that are in DRAM or on the way there, where that counts
	savedBy int64 // the step whose saves have the last of these

	match []int32 // what Match found
	at    uint64  // and when: version of the pool

	stored int      // tokens of its prompt that are said to be in DRAM
	chunks []uint64 // below HBM, that follow
	load   Load     // of these, what is to be loaded
	loaded Load     // since the table last had no block

	branch branch // of a Radix, instead of blocks

	readers reading
}

// Reset gives a table that holds no block the text of a new request: given prompt tokens of known
// content, or nil, of which the request has so many, and its output. What nobody else can have
// gets the name own.
//
// Of a prompt that is cut, the first half is what others may have too: its middle is removed.
func (t *Table) Reset(content *Content, given, prompt, output int, own uint64) {
	t.pieces = t.pieces[:0]
	t.blocks, t.full, t.written, t.saving = t.blocks[:0], 0, 0, 0
	t.match, t.at = t.match[:0], 0
	t.stored, t.own = 0, own
	t.branch = branch{keys: t.branch.keys[:0]}
	common, answer := prompt, mix(own, 1)
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
			t.pieces = append(t.pieces, Piece{p.ID, n})
			rest -= n
		}
		if content.Answer != 0 {
			answer = content.Answer
		}
	}
	if rest > 0 {
		t.pieces = append(t.pieces, Piece{mix(own, 2), rest})
	}
	t.pieces = append(t.pieces, Piece{answer, output})
	t.chain = NewChain(t.pieces)
}

// Stored has the first tokens of a new request's prompt be in DRAM, under a name of their own.
func (t *Table) Stored(tokens int) { t.stored = tokens }

// Loaded returns what the request has loaded from the tiers below HBM since its prefill began.
func (t *Table) Loaded() Load { return t.loaded }

// Holds says whether the request holds blocks.
func (t *Table) Holds() bool { return t != nil && len(t.blocks) > 0 }

// Full returns how many of the table's blocks, the first, have content that others can find.
func (t *Table) Full() int { return t.full }

// Blocks returns the pool's numbers of all of them, until the table changes.
func (t *Table) Blocks() []int32 { return t.blocks }

// Text returns the request's text, of a prompt or of all: at the end is the output, in one piece.
func (t *Table) Text(all bool) []Piece {
	if all {
		return t.pieces
	}
	return t.pieces[:len(t.pieces)-1]
}

// Block returns the pool's number of the i-th block of a table: while it is held nobody has another
// block of that number.
func (t *Table) Block(i int) int32 { return t.blocks[i] }
