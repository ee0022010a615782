package reference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// randomLlama has weights that keep variances, with norms around 1.
func randomLlama(seed uint64, layers, hidden, headsQ, headsKV, dim, ffn, vocab int) *Llama {
	r := rand.New(rand.NewPCG(seed, seed))
	matrix := func(out, in int) []float64 {
		w := random(r, out*in)
		for i := range w {
			w[i] = cuda.Rounded(w[i] / math.Sqrt(float64(in)))
		}
		return w
	}
	norm := func() []float64 {
		w := random(r, hidden)
		for i := range w {
			w[i] = cuda.Rounded(1 + w[i]/5)
		}
		return w
	}
	m := &Llama{HeadsQ: headsQ, HeadsKV: headsKV, Dim: dim, Body: Body{Eps: 1e-5, Round: Exact,
		Embed: Rounded(random(r, vocab*hidden), cuda.Rounded), Norm: norm(), Head: matrix(vocab, hidden)}}
	for d := range dim / 2 {
		m.InvFreq = append(m.InvFreq, float32(math.Pow(10000, -2*float64(d)/float64(dim))))
	}
	for range layers {
		m.Layers = append(m.Layers, LlamaLayer{norm(), matrix((headsQ+2*headsKV)*dim, hidden),
			matrix(hidden, headsQ*dim), MLP{norm(), matrix(2*ffn, hidden), matrix(hidden, ffn)}})
	}
	return m
}

func prompt(m *Llama, seed uint64, n int) []int {
	r := rand.New(rand.NewPCG(seed, 99))
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = r.IntN(len(m.Head) / len(m.Norm))
	}
	return tokens
}

func nearRows(t *testing.T, what string, got, want [][]float64) {
	t.Helper()
	near(t, what, slices.Concat(got...), slices.Concat(want...))
}

// identity is one layer of one head of two dimensions whose every matrix passes its input on, times
// the given factors of o and down.
func identity(embed []float64, o, down float64) *Llama {
	one := []float64{1, 0, 0, 1}
	times := func(f float64) []float64 { return []float64{f, 0, 0, f} }
	ones := []float64{1, 1}
	return &Llama{HeadsQ: 1, HeadsKV: 1, Dim: 2, Body: Body{InvFreq: []float32{1}, Round: Exact,
		Embed: embed, Norm: ones, Head: one},
		Layers: []LlamaLayer{{ones, slices.Concat(one, one, one), times(o),
			MLP{ones, slices.Concat(one, one), times(down)}}}}
}

// One token attends to itself: attention is v = norm(x). With x = (3, 4), whose root mean square is
// 5 / sqrt 2: v = (0.6, 0.8) sqrt 2, h = x + v points as x does, u = norm(h) = v, y = h + silu(u)
// u, logits = norm(y).
func TestLlamaOneTokenByHand(t *testing.T) {
	m := identity([]float64{3, 4}, 1, 1)
	u := []float64{0.6 * math.Sqrt2, 0.8 * math.Sqrt2}
	var y [2]float64
	for d, x := range []float64{3, 4} {
		y[d] = x + u[d] + u[d]*u[d]/(1+math.Exp(-u[d]))
	}
	rms := math.Sqrt((y[0]*y[0] + y[1]*y[1]) / 2)
	near(t, "logits", m.Forward([]int{0}, Selector{})[0], []float64{y[0] / rms, y[1] / rms})
}

// Two tokens, x0 = (1, 1) and x1 = (1, -1), which are their own norms; no FFN. At position 1 q and
// k are rotated by one radian: their product is 2 and the product with k0 is 2 sin 1, over sqrt 2.
// With weight w of token 1, attention is (1, 1 - 2w) and x = (2, -2w).
func TestLlamaTwoTokensByHand(t *testing.T) {
	m := identity([]float64{1, 1, 1, -1}, 1, 0)
	w := 1 / (1 + math.Exp((2*math.Sin(1)-2)/math.Sqrt2))
	rms := math.Sqrt((4 + 4*w*w) / 2)
	got := m.Forward([]int{0, 1}, Selector{})
	near(t, "first", got[0], []float64{1, 1})
	near(t, "second", got[1], []float64{2 / rms, -2 * w / rms})
}

func TestLlamaWholeEqualsPieces(t *testing.T) {
	for _, round := range []Round{Exact, cuda.Rounded} {
		m := randomLlama(1, 3, 24, 4, 2, 6, 20, 31)
		m.Round = round
		tokens := prompt(m, 1, 23)
		whole := m.Forward(tokens, Selector{})
		for _, chunks := range [][]int{{1, 22}, {7, 7, 9}, {22, 1}, slices.Repeat([]int{1}, 23)} {
			c := m.NewCache()
			var pieces [][]float64
			for _, n := range chunks {
				pieces = append(pieces, m.Extend(c, tokens[c.Tokens():][:n], Selector{})...)
			}
			nearRows(t, "pieces", pieces, whole)
		}
	}
}

// A model whose KV heads are repeated for every query head computes the same without groups.
func TestLlamaGroupsAreRepeatedHeads(t *testing.T) {
	const group = 4
	m := randomLlama(2, 2, 24, 8, 2, 6, 20, 31)
	wide := *m
	wide.HeadsKV = m.HeadsQ
	wide.Layers = slices.Clone(m.Layers)
	head := m.Dim * len(m.Norm)
	for i := range wide.Layers {
		qkv := m.Layers[i].QKV
		out := slices.Clone(qkv[:m.HeadsQ*head])
		for part := range 2 { // k, v
			for h := range m.HeadsQ {
				out = append(out, qkv[(m.HeadsQ+part*m.HeadsKV+h/group)*head:][:head]...)
			}
		}
		wide.Layers[i].QKV = out
	}
	tokens := prompt(m, 2, 19)
	nearRows(t, "repeated heads", wide.Forward(tokens, Selector{}), m.Forward(tokens, Selector{}))
}

// No token sees a later one.
func TestLlamaIsCausal(t *testing.T) {
	m := randomLlama(3, 2, 24, 4, 4, 6, 20, 31)
	tokens := prompt(m, 3, 12)
	want := m.Forward(tokens, Selector{})
	tokens[11] = (tokens[11] + 1) % (len(m.Head) / len(m.Norm))
	got := m.Forward(tokens, Selector{})
	nearRows(t, "before", got[:11], want[:11])
	if slices.Equal(got[11], want[11]) {
		t.Error("the last token does not matter")
	}
}

// Only distances of positions count: without rotation of the first tokens' order nothing could show
// them apart.
func TestLlamaKnowsPositions(t *testing.T) {
	m := randomLlama(4, 2, 24, 4, 4, 6, 20, 31)
	a, b := m.Forward([]int{5, 9, 7}, Selector{})[2], m.Forward([]int{9, 5, 7}, Selector{})[2]
	if slices.Equal(a, b) {
		t.Error("swapping two tokens changes nothing")
	}
	m.InvFreq = make([]float32, 3) // no rotation, and one layer: a set of tokens
	m.Layers = m.Layers[:1]
	near(t, "without positions", m.Forward([]int{5, 9, 7}, Selector{})[2],
		m.Forward([]int{9, 5, 7}, Selector{})[2])
}

func TestLlamaAllBlocksAreDense(t *testing.T) {
	m := randomLlama(5, 2, 24, 8, 2, 6, 20, 31)
	tokens := prompt(m, 5, 25)
	asked := map[[2]int]bool{}
	all := Selector{BlockTokens: 4, Blocks: func(position, layer, kvHead int) []int {
		asked[[2]int{layer, kvHead}] = true
		var blocks []int
		for b := position / 4; b >= 0; b-- { // order does not matter
			blocks = append(blocks, b)
		}
		return blocks
	}}
	nearRows(t, "all blocks", m.Forward(tokens, all), m.Forward(tokens, Selector{}))
	if len(asked) != 4 {
		t.Errorf("asked for %d pairs of layer and KV head, want 4", len(asked))
	}
	none := Selector{BlockTokens: 4, Blocks: func(int, int, int) []int { return nil }}
	nearRows(t, "nil", m.Forward(tokens, none), m.Forward(tokens, Selector{}))
}

// In one layer, a token that attends to the last blocks computes what it would if nothing had been
// before them; and the selection of one KV head does not affect the others.
func TestLlamaSelectsBlocks(t *testing.T) {
	m := randomLlama(6, 1, 24, 8, 2, 6, 20, 31)
	tokens := prompt(m, 6, 18)
	last := Selector{BlockTokens: 4, Blocks: func(position, _, _ int) []int {
		if position < 17 {
			return nil
		}
		return []int{3, 4} // tokens 12 to 17
	}}
	got := m.Forward(tokens, last)
	short := m.Forward(tokens[12:], Selector{}) // its positions are 12 less, their distances the same
	for i := range got[17] {
		if d := math.Abs(got[17][i] - short[5][i]); d > 1e-5 { // angles are float32
			t.Fatalf("logit %d: %g with blocks 3 and 4, %g without the tokens before", i, got[17][i],
				short[5][i])
		}
	}
	one := last
	one.Blocks = func(position, layer, kvHead int) []int {
		if kvHead == 0 {
			return nil
		}
		return last.Blocks(position, layer, kvHead)
	}
	c := m.NewCache()
	m.Extend(c, tokens, Selector{})
	query := random(rand.New(rand.NewPCG(7, 7)), 8*6)
	mixed, dense, sparse := m.attend(c, 0, 17, query, one), m.attend(c, 0, 17, query, Selector{}),
		m.attend(c, 0, 17, query, last)
	near(t, "head 0", mixed[:24], dense[:24])
	near(t, "head 1", mixed[24:], sparse[24:])
	if slices.Equal(dense[24:], sparse[24:]) {
		t.Error("a selection of two blocks equals all five")
	}
}

func TestLlamaGreedy(t *testing.T) {
	m := randomLlama(8, 2, 24, 8, 2, 6, 20, 31)
	tokens := prompt(m, 8, 9)
	got := m.Greedy(tokens, 6)
	for i, next := range got {
		logits := m.Forward(slices.Concat(tokens, got[:i]), Selector{})
		if want := Argmax(logits[len(logits)-1]); next != want {
			t.Fatalf("token %d is %d, the whole sequence gives %d", i, next, want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d tokens, want 6", len(got))
	}
	var positions []int
	m.GreedySelected(tokens, 4,
		Selector{BlockTokens: 4, Blocks: func(position, layer, kvHead int) []int {
			if layer == 0 && kvHead == 0 {
				positions = append(positions, position)
			}
			return nil
		}})
	if want := []int{9, 10, 11}; !slices.Equal(positions, want) {
		t.Errorf("selections for positions %v, want those of the decoded tokens, %v", positions, want)
	}
}

// Rounding to fp16 moves the logits by a few of its steps, and every value stored is an fp16 value.
func TestLlamaRounds(t *testing.T) {
	exact := randomLlama(9, 2, 64, 8, 2, 16, 88, 101)
	low := *exact
	low.Round = cuda.Rounded
	tokens := prompt(exact, 9, 20)
	want, got := exact.Forward(tokens, Selector{}), low.Forward(tokens, Selector{})
	worst := 0.0
	for i := range got {
		for j, v := range got[i] {
			if cuda.Rounded(v) != v {
				t.Fatalf("token %d: logit %d is %g, no fp16 value", i, j, v)
			}
			worst = math.Max(worst, math.Abs(v-want[i][j]))
		}
	}
	if worst == 0 || worst > 0.02 {
		t.Errorf("fp16 moves logits by up to %g", worst)
	}
}

// A value is rounded where it is stored, and only there. Of one token: the embedding, three norms
// (twice each), qkv, cosine, sine, four products and two sums of each pair of q and k, attention,
// o, gate and up, the activation (twice), down, two residual sums, logits.
func TestLlamaRoundsWhatIsStored(t *testing.T) {
	m := randomLlama(10, 1, 24, 8, 2, 6, 20, 31)
	rounds := 0
	m.Round = func(x float64) float64 { rounds++; return x }
	m.Forward([]int{3}, Selector{})
	const hidden, q, kv, dim, ffn, vocab = 24, 8, 2, 6, 20, 31
	want := hidden + 3*2*hidden + (q+2*kv)*dim + (q+kv)*dim/2*(2+4+2) + q*dim + hidden + 2*ffn +
		2*ffn + hidden + 2*hidden + vocab
	if rounds != want {
		t.Errorf("%d values are rounded, want %d", rounds, want)
	}
}
