package pattern

import "fmt"

// Kind names a pattern.
type Kind string

// Patterns of a head. The sizes A and B of a Head are in parentheses.
const (
	Dense         Kind = "dense"
	AShape        Kind = "a-shape"        // (sink tokens, window tokens), StreamingLLM
	VerticalSlash Kind = "vertical-slash" // (vertical lines, slash lines), MInference Algorithm 2
	BlockSparse   Kind = "block-sparse"   // (blocks), MInference Algorithm 3
	Dilated       Kind = "dilated"        // (sink tokens, every second token of 2B tokens)
	// (sink and window tokens, every second token of 2B tokens)
	Strided Kind = "strided"
	InfLLM  Kind = "infllm" // (sink and window tokens, retrieved tokens)
)

// BlockTokens is the size, in tokens, of a block of queries and of keys in MInference's
// kernels. It is also the number of last queries from which vertical and slash lines are
// estimated.
const BlockTokens = 64

// Head is the attention pattern of one query head.
type Head struct {
	Kind Kind
	A, B int
}

// published are the sizes of each pattern in the MInference paper (§4, Table 6). The
// vertical-slash sizes are the most frequent ones in its published files.
var published = []Head{
	{Dense, 0, 0},
	{AShape, 1024, 4096},
	{VerticalSlash, 1000, 6096},
	{BlockSparse, 100, 0},
	{Dilated, 1024, 4096},
	{Strided, 1024 + 2048, 2048},
	{InfLLM, 128 + 8192, 16 * 128},
}

// Published returns a pattern with its published sizes.
func Published(kind Kind) (Head, bool) {
	for _, h := range published {
		if h.Kind == kind {
			return h, true
		}
	}
	return Head{}, false
}

// Kinds lists the sparse patterns.
func Kinds() (kinds []Kind) {
	for _, h := range published {
		if h.Kind != Dense {
			kinds = append(kinds, h.Kind)
		}
	}
	return kinds
}

// Indexed reports whether keys are found per prompt, which has a cost.
func (k Kind) Indexed() bool { return k == VerticalSlash || k == BlockSparse }

// check returns an error if the sizes leave nothing to attend to or are too large.
func (h Head) check() error {
	switch {
	case h.Kind == Dense:
		return nil
	case h.A < 1:
		return fmt.Errorf("%s with a first size of %d: want 1 or more", h.Kind, h.A)
	case h.Kind != BlockSparse && h.B < 1:
		return fmt.Errorf("%s with a second size of %d: want 1 or more", h.Kind, h.B)
	case h.A > mostSize || h.B > mostSize:
		return fmt.Errorf("%s with sizes of %d and %d: want at most %d", h.Kind, h.A, h.B, mostSize)
	}
	return nil
}

// mostSize is larger than any context.
const mostSize = 1 << 30

// String returns the pattern with its sizes.
func (h Head) String() string {
	switch h.Kind {
	case Dense:
		return string(h.Kind)
	case BlockSparse:
		return fmt.Sprintf("%s (%d)", h.Kind, h.A)
	}
	return fmt.Sprintf("%s (%d, %d)", h.Kind, h.A, h.B)
}
