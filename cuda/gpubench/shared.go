package main

import "fmt"

// shared times decode of requests that begin with the same blocks, as with a prefix cache, relative
// to the same requests with separate blocks: repeated reads come from the L2.
func shared(b *bench) {
	for _, c := range []struct{ requests, context, prefix, chosen int }{
		{2, 6144, 5120, 6144}, {4, 6144, 5120, 6144}, {8, 6144, 5120, 6144}, {16, 6144, 5120, 6144},
		{8, 6144, 2048, 6144}, {8, 20480, 16384, 20480}, {4, 65536, 61440, 65536},
		{2, 6144, 5120, 2048}, {4, 6144, 5120, 2048}, {8, 6144, 5120, 2048}, {16, 6144, 5120, 2048},
	} {
		const headsQ, headsKV = 32, 8
		var took [2]timing
		var again, bytes int64
		for i, prefix := range []int{0, c.prefix} {
			d := b.sharingBatch(headsQ, headsKV, equal(c.requests, c.context), c.chosen/blockTokens,
				prefix/blockTokens)
			took[i], again, bytes = b.time(50, &d.args), d.again, d.bytes
			what := fmt.Sprintf("batch %d, %d/%d heads, %d of %d tokens a head, %d shared",
				c.requests, headsQ, headsKV, c.chosen, c.context, prefix)
			b.ofCopy(what, took[i], d.bytes)
			b.free()
		}
		fmt.Printf("    %.1f MB of %.1f read again, %.1f us less\n", float64(again)/1e6,
			float64(bytes)/1e6, 1e3*(took[0].median-took[1].median))
	}
}
