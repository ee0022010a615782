package reference

// Body is what models have in common whatever their attention.
type Body struct {
	Eps     float64
	InvFreq []float32 // radians a token of each rotated pair
	Round   Round
	Embed   []float64 // [Vocab][Hidden]
	Norm    []float64 // [Hidden]
	Head    []float64 // [Vocab][Hidden]
}

// MLP is the part of a layer after attention.
type MLP struct {
	MLPNorm []float64 // [Hidden]
	GateUp  []float64 // [2 FFN][Hidden]
	Down    []float64 // [Hidden][FFN]
}

// Embedded returns the residual stream [token][Hidden] of a sequence.
func (m *Body) Embedded(tokens []int) [][]float64 {
	x, hidden := make([][]float64, len(tokens)), len(m.Norm)
	for i, token := range tokens {
		x[i] = Rounded(m.Embed[token*hidden:][:hidden], m.Round)
	}
	return x
}

// Logits returns [token][Vocab].
func (m *Body) Logits(x [][]float64) [][]float64 {
	logits := make([][]float64, len(x))
	for i := range x {
		logits[i] = Linear(m.Head, RMSNorm(x[i], m.Norm, m.Eps, m.Round), m.Round)
	}
	return logits
}

// Angles computes in float32, as every implementation does: at long contexts its rounding is part
// of the model.
func (m *Body) Angles(position int) []float64 {
	angle := make([]float64, len(m.InvFreq))
	for d, f := range m.InvFreq {
		angle[d] = float64(float32(position) * f)
	}
	return angle
}

// AddMLP adds the MLP to a token's residual stream, in place.
func (m *Body) AddMLP(x []float64, w *MLP) {
	u := Linear(w.GateUp, RMSNorm(x, w.MLPNorm, m.Eps, m.Round), m.Round)
	m.AddTo(x, Linear(w.Down, SiluMul(u, m.Round), m.Round))
}

// AddTo adds to a token's residual stream, in place.
func (m *Body) AddTo(x, add []float64) {
	for d := range x {
		x[d] = m.Round(x[d] + add[d])
	}
}

// Linear returns r(w x) for w [out][in].
func Linear(w, x []float64, r Round) []float64 {
	out := make([]float64, len(w)/len(x))
	for i := range out {
		out[i] = r(dot(x, w[i*len(x):]))
	}
	return out
}

// Rounded returns x as r stores it.
func Rounded(x []float64, r Round) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = r(v)
	}
	return out
}
