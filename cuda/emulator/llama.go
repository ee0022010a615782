package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// The other steps of a Llama layer. Values round to fp16 between steps as in sparseserve.h.

func embed(m *access, a *cuda.EmbedArgs) {
	m.need(a.Hidden > 0 && a.Hidden%8 == 0, "hidden a multiple of 8")
	hidden := int(a.Hidden)
	out := m.halves("Out", a.Out, 0, int(a.Tokens)*hidden)
	for i, token := range view[int32](m, "Token", a.Token, 0, int(a.Tokens)) {
		copy(out[i*hidden:], m.halves("Table", a.Table, int(token)*hidden, hidden))
	}
}

func rmsNorm(m *access, a *cuda.RMSNormArgs) {
	m.need(a.Hidden > 0 && a.Hidden%8 == 0 && a.Hidden <= 32768,
		"hidden a multiple of 8, at most 32768")
	m.need(a.Residual == 0 || a.Row == 0, "no rows chosen with a residual")
	hidden := int(a.Hidden)
	weight := m.tensor("Weight", a.Weight, 0, hidden)
	for i := range int(a.Rows) {
		from := i
		if a.Row != 0 {
			from = int(*at[int32](m, "Row", a.Row, i))
		}
		row := func(arg string, base cuda.Ptr, i int) []cuda.Half {
			return m.halves(arg, base, i*hidden, hidden)
		}
		x := cuda.Floats(row("X", a.X, from))
		if a.Residual != 0 {
			residual := row("Residual", a.Residual, i)
			for d, r := range cuda.Floats(residual) {
				residual[d] = cuda.HalfOf(r + x[d])
			}
			x = cuda.Floats(residual)
		}
		store(row("Out", a.Out, i), reference.RMSNorm(x, weight, float64(a.Eps), cuda.Rounded))
	}
}

func rope(m *access, a *cuda.RopeArgs) {
	m.need(a.HeadDim == 64 || a.HeadDim == 128, "64 or 128 values a head")
	q, kv, dim := int(a.HeadsQ), int(a.HeadsKV), int(a.HeadDim)
	heads := q + 2*kv
	position := view[int32](m, "Position", a.Position, 0, int(a.Tokens))
	if len(position) == 0 {
		return
	}
	qkv := m.halves("QKV", a.QKV, 0, len(position)*heads*dim)
	for i := range position {
		angle := anglesOf(m, a.Position, a.InvFreq, i, dim)
		token := qkv[i*heads*dim:][:heads*dim]
		for h := range q + kv {
			head := token[h*dim:][:dim]
			store(head, reference.Rope(cuda.Floats(head), angle, cuda.Rounded))
		}
		if a.QOut != 0 {
			copy(m.halves("QOut", a.QOut, i*q*dim, q*dim), token)
		}
	}
	if a.Pool != 0 {
		kvWrite(m, a)
	}
}

// kvWrite writes the k and v of each token to their blocks; k is already rotated.
func kvWrite(m *access, a *cuda.RopeArgs) {
	m.need(a.HeadDim == 64 || a.HeadDim == 128, "64 or 128 values a head")
	m.need(a.BlockTokens > 0, "block_tokens")
	q, kv, dim := int(a.HeadsQ), int(a.HeadsKV), int(a.HeadDim)
	for i, p := range view[int32](m, "Position", a.Position, 0, int(a.Tokens)) {
		token := m.halves("QKV", a.QKV, i*(q+2*kv)*dim, (q+2*kv)*dim)
		for h := range kv {
			k := keyPlace(m, a, i, int(p), h)
			copy(m.halves("Pool", a.Pool, k, dim), token[(q+h)*dim:])
			copy(m.halves("Pool", a.Pool, k+int(a.BlockTokens)*dim, dim), token[(q+kv+h)*dim:])
		}
	}
}

// keyPlace returns the place of a token's key of a KV head in the pool; its value is BlockTokens
// rows later.
func keyPlace(m *access, a *cuda.RopeArgs, token, position, head int) int {
	row, first := 0, 0
	if a.Row != 0 {
		row = int(*at[int32](m, "Row", a.Row, token))
	}
	if a.First != 0 {
		first = int(*at[int32](m, "First", a.First, row))
	}
	block, offset := position/int(a.BlockTokens), position%int(a.BlockTokens)
	if position < 0 || block < first {
		m.fault("Position", a.Position+cuda.Ptr(4*token), 4,
			"position %d of row %d, whose first block is %d", position, row, first)
	}
	entry := row*int(a.RowStride) + block - first
	if a.Pages == 0 {
		entry += head * int(a.HeadStride)
	}
	slot := int(*at[int32](m, "Table", a.Table, entry))
	if a.Pages != 0 {
		slot = slot*int(a.HeadsKV) + head
	}
	return (2*slot*int(a.BlockTokens) + offset) * int(a.HeadDim)
}

func siluMul(m *access, a *cuda.SiluMulArgs) {
	m.need(a.FFN > 0 && a.FFN%8 == 0, "ffn a multiple of 8")
	ffn := int(a.FFN)
	for i := range int(a.Tokens) {
		x := m.tensor("X", a.X, 2*i*ffn, 2*ffn)
		store(m.halves("Out", a.Out, i*ffn, ffn), reference.SiluMul(x, cuda.Rounded))
	}
}

func argmax(m *access, a *cuda.ArgmaxArgs) {
	m.need(a.Vocab > 0 && a.Vocab <= 1<<24 && a.Stride >= a.Vocab,
		"0 < vocab <= stride, vocab of at most 2^24")
	if a.Rows > 0 {
		m.aligned("Logits", a.Logits, 16)
	}
	for i := range int(a.Rows) {
		row := view[cuda.Half](m, "Logits", a.Logits, i*int(a.Stride), int(a.Vocab))
		*at[int32](m, "Out", a.Out, i) = int32(reference.Argmax(cuda.Floats(row)))
	}
}
