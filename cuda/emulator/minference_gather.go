package emulator

import "github.com/sparseserve/sparseserve/cuda"

func miGather(m *access, a *cuda.MIGatherArgs) {
	m.need(a.BlockTokens > 0, "blocks")
	m.need(a.HeadStride%8 == 0 && a.HeadStride >= 128*int64(a.Tokens),
		"a stride of heads that holds the tokens, a multiple of 8")
	const dim = 128
	tokens := int(a.BlockTokens)
	for head := range int(a.Heads) {
		for first := 0; first < int(a.Tokens); first += tokens {
			slot := *at[int32](m, "Table", a.Table, head*int(a.TableStride)+first/tokens)
			n := min(tokens, int(a.Tokens)-first) * dim
			for values, to := range []cuda.Ptr{a.K, a.V} {
				from := (2*int(slot) + values) * tokens * dim
				copy(m.halves([]string{"K", "V"}[values], to, head*int(a.HeadStride)+first*dim, n),
					m.halves("Pool", a.Pool, from, n))
			}
		}
	}
}
