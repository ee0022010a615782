package emulator

import "github.com/sparseserve/sparseserve/cuda"

func checkMIGather(c *checks, a *cuda.MIGatherArgs) {
	c.need(a.Tokens >= 0 && a.Heads > 0 && a.BlockTokens > 0, "tokens >= 0, heads and blocks")
	c.need(a.HeadStride%8 == 0 && a.HeadStride >= 128*int64(a.Tokens),
		"a stride of heads that holds the tokens, a multiple of 8")
	if a.Tokens > 0 {
		c.given("pool, table, k and v", a.Pool, a.Table, a.K, a.V)
	}
}

func miGather(m *access, a *cuda.MIGatherArgs) {
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
