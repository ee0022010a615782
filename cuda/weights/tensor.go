package weights

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// Kind names a tensor of the model or of one layer. Linears are [out][in]; with D = HeadDim:
type Kind int

const (
	Embed    Kind = iota // [vocab][hidden]
	AttnNorm             // [hidden]
	QKV                  // [(HeadsQ + 2 HeadsKV) D][hidden]: rows of q, then k, then v
	O                    // [hidden][HeadsQ D]
	MLPNorm              // [hidden]
	GateUp               // [2 FFN][hidden]: rows of gate, then up
	Down                 // [hidden][FFN]
	Norm                 // [hidden]
	Head                 // [vocab][hidden]
	Kinds                // how many there are
)

// String returns the name that errors use.
func (k Kind) String() string {
	names := [...]string{"embed", "attn_norm", "qkv", "o", "mlp_norm", "gate_up", "down", "norm",
		"head"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Tensor is one of the model's tensors; Layer counts only for kinds of a layer.
type Tensor struct {
	Kind  Kind
	Layer int
}

// String names a tensor: "layers.3.qkv", "embed".
func (t Tensor) String() string {
	if t.inLayer() {
		return fmt.Sprintf("layers.%d.%s", t.Layer, t.Kind)
	}
	return t.Kind.String()
}

// Shape returns rows and columns; a norm is one row.
func (t Tensor) Shape(c Config) (rows, columns int) {
	switch t.Kind {
	case Embed, Head:
		return c.Vocab, c.Hidden
	case QKV:
		return (c.HeadsQ + 2*c.HeadsKV) * c.HeadDim, c.Hidden
	case O:
		return c.Hidden, c.HeadsQ * c.HeadDim
	case GateUp:
		return 2 * c.FFN, c.Hidden
	case Down:
		return c.Hidden, c.FFN
	}
	return 1, c.Hidden
}

// Values returns the number of weights.
func (t Tensor) Values(c Config) int {
	rows, columns := t.Shape(c)
	return rows * columns
}

func (t Tensor) inLayer() bool { return t.Kind >= AttnNorm && t.Kind <= Down }

func (t Tensor) isNorm() bool { return t.Kind == AttnNorm || t.Kind == MLPNorm || t.Kind == Norm }

// Source is a model's weights.
type Source interface {
	Config() Config
	// Read writes the tensor to dst, which has exactly its size. A tied head reads as the
	// embedding. Several tensors may be read at once.
	Read(t Tensor, dst []cuda.Half) error
}

// Filler is a Source whose tensors the GPU can make by itself, with ss_fill.
type Filler interface {
	Source
	// Fill returns the arguments of ss_fill that write the tensor; false for one that must be read.
	Fill(t Tensor) (seed uint64, scale float32, ok bool)
}

// fits checks the arguments of Read.
func fits(c Config, t Tensor, dst []cuda.Half) error {
	switch {
	case t.Kind < Embed || t.Kind > Head:
		return fmt.Errorf("weights: no tensor %v", t)
	case t.inLayer() && (t.Layer < 0 || t.Layer >= c.Layers):
		return fmt.Errorf("weights: no tensor %v in a model of %d layers", t, c.Layers)
	case len(dst) != t.Values(c):
		rows, columns := t.Shape(c)
		return fmt.Errorf("weights: %v is [%d][%d], the buffer holds %d values", t, rows, columns,
			len(dst))
	}
	return nil
}
