package weights

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// Kind names a tensor of the model or of one layer. Linears are [out][in]; with D = HeadDim and the
// fields of Latent:
type Kind int

const (
	Embed    Kind = iota // [vocab][hidden]
	AttnNorm             // [hidden]
	QKV                  // [(HeadsQ + 2 HeadsKV) D][hidden]: rows of q, then k, then v

	// In place of QKV in a model with latent attention:
	QDown       // [QRank][hidden]
	QNorm       // [QRank]
	QUp         // [HeadsQ D][QRank]: of each head Nope values, then Rope
	KVDown      // [Rank + Rope][hidden]
	KVNorm      // [Rank]
	KeyUp       // [HeadsQ][Rank][Nope]
	ValueUp     // [HeadsQ][Value][Rank]
	IndexQ      // [IndexHeads IndexDim][QRank]
	IndexKey    // [IndexDim][hidden]
	IndexNorm   // [IndexDim]
	IndexBias   // [IndexDim]
	IndexWeight // [IndexHeads][hidden]

	O       // [hidden][Attended]
	MLPNorm // [hidden]
	GateUp  // [2 FFN][hidden]: rows of gate, then up
	Down    // [hidden][FFN]
	Norm    // [hidden]
	Head    // [vocab][hidden]
	Kinds   // how many there are
)

var names = [Kinds]string{Embed: "embed", AttnNorm: "attn_norm", QKV: "qkv", QDown: "q_down",
	QNorm: "q_norm", QUp: "q_up", KVDown: "kv_down", KVNorm: "kv_norm", KeyUp: "key_up",
	ValueUp: "value_up", IndexQ: "index_q", IndexKey: "index_key", IndexNorm: "index_norm",
	IndexBias: "index_bias", IndexWeight: "index_weight", O: "o", MLPNorm: "mlp_norm",
	GateUp: "gate_up", Down: "down", Norm: "norm", Head: "head"}

// String returns the name that errors use.
func (k Kind) String() string {
	if k < 0 || k >= Kinds {
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
	shape := [Kinds][2]int{
		Embed: {c.Vocab, c.Hidden}, Head: {c.Vocab, c.Hidden}, Norm: {1, c.Hidden},
		AttnNorm: {1, c.Hidden}, MLPNorm: {1, c.Hidden}, O: {c.Hidden, c.Attended()},
		GateUp: {2 * c.FFN, c.Hidden}, Down: {c.Hidden, c.FFN},
		QKV:   {(c.QHeads + 2*c.KVHeads) * c.HeadDim, c.Hidden},
		QDown: {c.QRank, c.Hidden}, QNorm: {1, c.QRank}, QUp: {c.QHeads * c.HeadDim, c.QRank},
		KVDown: {c.LatentDim(), c.Hidden}, KVNorm: {1, c.KVRank},
		KeyUp: {c.QHeads * c.KVRank, c.NopeDim}, ValueUp: {c.QHeads * c.ValueDim, c.KVRank},
		IndexQ: {c.IndexHeads * c.IndexHeadDim, c.QRank}, IndexKey: {c.IndexHeadDim, c.Hidden},
		IndexNorm: {1, c.IndexHeadDim}, IndexBias: {1, c.IndexHeadDim},
		IndexWeight: {c.IndexHeads, c.Hidden},
	}[t.Kind]
	return shape[0], shape[1]
}

// Values returns the number of weights.
func (t Tensor) Values(c Config) int {
	rows, columns := t.Shape(c)
	return rows * columns
}

func (t Tensor) inLayer() bool { return t.Kind >= AttnNorm && t.Kind <= Down }

func (t Tensor) isNorm() bool {
	switch t.Kind {
	case AttnNorm, QNorm, KVNorm, IndexNorm, IndexBias, MLPNorm, Norm:
		return true
	}
	return false
}

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
