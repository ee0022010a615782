package patterns

// Head is the input of one query head's attention: rows of D values, rotated if the model uses
// rotation.
type Head struct {
	D       int
	Q, K, V []float32 // [tokens][D]
}

// Tokens returns the length of the prompt.
func (h *Head) Tokens() int { return len(h.Q) / h.D }

func (h *Head) query(i int) []float32 { return h.Q[i*h.D:][:h.D] }
func (h *Head) key(j int) []float32   { return h.K[j*h.D:][:h.D] }
func (h *Head) value(j int) []float32 { return h.V[j*h.D:][:h.D] }

func dot(a, b []float32) (sum float32) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
