//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// same compares with a reference that rounds where the kernel must: all close, and nearly all
// equal. A kernel that rounds elsewhere differs in many last bits; fp32 sums and functions
// move one value in a hundred or fewer across a rounding border.
func (g *gpu) same(what string, got, want []float64, dim int) {
	g.t.Helper()
	g.near(what, got, want, dim, 5e-4, 2e-3)
	differ := 0
	for i := range want {
		if got[i] != want[i] {
			differ++
		}
	}
	if differ > 2+len(want)/50 {
		g.t.Errorf("%s: %d of %d values differ from the rounded reference", what, differ, len(want))
	}
}

func TestGPUEmbed(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const vocab = 321
		for _, hidden := range []int{8, 64, 1048, 4096, 5120, 18432} {
			table, _ := g.normal(vocab*hidden, 1)
			on := upload(g, table)
			for _, tokens := range []int{1, 3, 130} {
				// Tokens are in device memory or, as they come from the host, in pinned memory.
				token := g.host(int64(tokens)*4, DriverPages)
				var want []Half
				for i := range tokens {
					id := []int{0, vocab - 1, g.r.IntN(vocab)}[min(i, 2)]
					Slice[int32](token)[i] = int32(id)
					want = append(want, table[id*hidden:(id+1)*hidden]...)
				}
				for name, at := range map[string]Ptr{"pinned": token.Ptr(),
					"device": upload(g, Slice[int32](token))} {
					out := g.device(int64(len(want)+8) * 2)
					g.must(g.Launch(&EmbedArgs{Table: on, Token: at, Out: out, Tokens: int32(tokens),
						Hidden: int32(hidden)}, 0))
					got := download[Half](g, out, len(want)+8)
					if !slices.Equal(got[:len(want)], want) {
						t.Errorf("hidden %d, %d %s tokens: the rows differ", hidden, tokens, name)
					}
					if slices.IndexFunc(got[len(want):], func(h Half) bool { return h != 0xffff }) >= 0 {
						t.Errorf("hidden %d, %d %s tokens: written past the end", hidden, tokens, name)
					}
				}
			}
		}
	})
}

func TestGPURMSNorm(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, hidden := range []int{8, 64, 1000, 2048, 3584, 4096, 5120, 8192, 9000, 32768} {
			weight, weightF := g.normal(hidden, 1)
			onWeight := upload(g, weight)
			for _, rows := range []int{1, 3, 65} {
				x, xf := g.normal(rows*hidden, 3)
				r, rf := g.normal(rows*hidden, 20)
				args := RMSNormArgs{X: upload(g, x), Weight: onWeight, Out: g.device(int64(rows*hidden) * 2),
					Rows: int32(rows), Hidden: int32(hidden), Eps: 1e-5}
				want := func(of []float64) (out []float64) {
					for i := range rows {
						out = append(out, reference.RMSNorm(of[i*hidden:(i+1)*hidden], weightF, 1e-5, Rounded)...)
					}
					return out
				}
				result := func(what string, of []float64) {
					g.same(fmt.Sprintf("%s, %d rows of %d", what, rows, hidden),
						Floats(download[Half](g, args.Out, rows*hidden)), want(of), hidden)
				}
				g.must(g.Launch(&args, 0))
				result("norm", xf)

				from, gathered := make([]int32, rows), []float64{}
				for i := range from {
					from[i] = int32(g.r.IntN(rows))
					gathered = append(gathered, xf[int(from[i])*hidden:][:hidden]...)
				}
				args.Row, args.Out = upload(g, from), g.device(int64(rows*hidden)*2)
				g.must(g.Launch(&args, 0))
				result("gathered rows", gathered)

				sum := make([]float64, rows*hidden)
				for i := range sum {
					sum[i] = Rounded(rf[i] + xf[i])
				}
				args.Row, args.Residual, args.Out = 0, upload(g, r), args.X // in place
				g.must(g.Launch(&args, 0))
				result("with residual", sum)
				if got := Floats(download[Half](g, args.Residual, len(sum))); !slices.Equal(got, sum) {
					t.Errorf("%d rows of %d: the residual is not the rounded sum", rows, hidden)
				}
			}
		}
	})
}

func TestGPURMSNormOfSmallValues(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const hidden = 256
		x, xf := g.normal(hidden, 1e-3) // eps is as large as the mean square
		weight, weightF := g.normal(hidden, 1)
		out := g.device(hidden * 2)
		g.must(g.Launch(&RMSNormArgs{X: upload(g, x), Weight: upload(g, weight), Out: out, Rows: 1,
			Hidden: hidden, Eps: 1e-6}, 0))
		g.same("norm", Floats(download[Half](g, out, hidden)),
			reference.RMSNorm(xf, weightF, 1e-6, Rounded), hidden)
	})
}

func TestGPUSiluMul(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, ffn := range []int{8, 1000, 2048, 11008, 14336} {
			for _, tokens := range []int{1, 3, 65} {
				x, xf := g.normal(tokens*2*ffn, 3)
				out := g.device(int64(tokens*ffn+8) * 2)
				g.must(g.Launch(&SiluMulArgs{X: upload(g, x), Out: out, Tokens: int32(tokens),
					FFN: int32(ffn)}, 0))
				var want []float64
				for i := range tokens {
					want = append(want, reference.SiluMul(xf[i*2*ffn:(i+1)*2*ffn], Rounded)...)
				}
				got := download[Half](g, out, len(want)+8)
				g.same(fmt.Sprintf("%d tokens of %d", tokens, ffn), Floats(got[:len(want)]), want, ffn)
				if slices.IndexFunc(got[len(want):], func(h Half) bool { return h != 0xffff }) >= 0 {
					t.Errorf("%d tokens of %d: written past the end", tokens, ffn)
				}
			}
		}
		// The ends of fp16, where exp overflows or the product does.
		gate := []float64{65504, -65504, 100, -100, 0, -12, 88, -88}
		x := make([]Half, 16)
		for i, v := range gate {
			x[i], x[8+i] = HalfOf(v), HalfOf(2)
		}
		out := g.device(16)
		g.must(g.Launch(&SiluMulArgs{X: upload(g, x), Out: out, Tokens: 1, FFN: 8}, 0))
		got := Floats(download[Half](g, out, 8))
		for i, v := range gate {
			want := Rounded(Rounded(v/(1+math.Exp(-v))) * 2)
			if got[i] != want && !(math.Abs(got[i]-want) <= 1e-3*math.Abs(want)) {
				t.Errorf("silu(%g) * 2 is %g, want %g", v, got[i], want)
			}
		}
	})
}

func TestGPUArgmax(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const plusInf, minusInf, nan = 0x7c00, 0xfc00, 0x7e00
		for _, c := range []struct{ rows, vocab, stride int }{
			{1, 1, 1}, {1, 7, 7}, {3, 97, 97}, {5, 101, 103}, {1, 32000, 32000}, {2, 128256, 128256},
			{7, 32001, 32003}, {33, 5000, 5000}, {300, 1003, 1011}, {300, 4096, 4096},
		} {
			x, xf := g.normal(c.rows*c.stride, 2) // fp16 is coarse: the maximum is often shared
			for i := range c.rows {
				row, rowF := x[i*c.stride:(i+1)*c.stride], xf[i*c.stride:(i+1)*c.stride]
				for j := c.vocab; j < c.stride; j++ {
					row[j] = plusInf // beyond the vocabulary
				}
				set := func(j int, h Half) { row[j], rowF[j] = h, h.Float() }
				switch i % 8 {
				case 1: // ties, the last value among them
					set(c.vocab-1, HalfOf(50))
					set(g.r.IntN(c.vocab), HalfOf(50))
					set(g.r.IntN(c.vocab), HalfOf(50))
				case 2: // NaN anywhere
					for range 1 + c.vocab/3 {
						set(g.r.IntN(c.vocab), nan)
					}
				case 3:
					set(g.r.IntN(c.vocab), plusInf)
				case 4:
					for j := range c.vocab {
						set(j, minusInf)
					}
				case 5: // all equal, but for the sign of zero
					for j := range c.vocab {
						set(j, Half(g.r.IntN(2))<<15)
					}
				case 6:
					for j := range c.vocab {
						set(j, nan)
					}
				case 7: // one number below all usual ones
					for j := range c.vocab {
						set(j, minusInf)
					}
					set(g.r.IntN(c.vocab), HalfOf(-65504))
				}
			}
			out := g.device(int64(c.rows) * 4)
			g.must(g.Launch(&ArgmaxArgs{Logits: upload(g, x), Out: out, Rows: int32(c.rows),
				Vocab: int32(c.vocab), Stride: int32(c.stride)}, 0))
			for i, got := range download[int32](g, out, c.rows) {
				if want := reference.Argmax(xf[i*c.stride:][:c.vocab]); int(got) != want {
					t.Errorf("%+v, row %d: %d, want %d", c, i, got, want)
					break
				}
			}
		}
	})
}
