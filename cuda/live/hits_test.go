package live_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// hitLengths and hitContent describe requests that begin alike: with the first tokens of text 7, of
// text 8, and the last with text 7 and the answer of the first, whose KV decodes have made.
var hitLengths = []length{{80, 24}, {96, 12}, {130, 18}, {64, 9}, {81, 17}, {97, 3}, {112, 8}}

func hitContent(answers bool) (all []*prefix.Content) {
	for i, l := range hitLengths {
		text, common := uint64(7), 64
		if i == 2 || i == 5 {
			text = 8
		}
		c := &prefix.Content{Prompt: []prefix.Piece{{ID: text, Tokens: common}}}
		if rest := l.prompt - common; rest > 0 {
			c.Prompt = append(c.Prompt, prefix.Piece{ID: uint64(100 + i), Tokens: rest})
		}
		if answers {
			c.Answer = uint64(200 + i)
		}
		all = append(all, c)
	}
	if answers {
		all[6].Prompt = append(slices.Clone(all[0].Prompt), prefix.Piece{ID: 200, Tokens: 24},
			prefix.Piece{ID: 106, Tokens: 8})
	}
	return all
}

// addHits adds cases with a prefix cache. Answers of dense attention are quoted; sparse attention
// computes answers from selections, which a prompt that quotes them would not have.
func addHits(all map[string]*scenario) {
	unshared := []string{"sparse", "offload, memcpy", "layer", "psa, layer", "gpu lookup: layer"}
	for _, model := range []string{"mha", "gqa"} {
		for _, of := range []string{"dense", "dense, short of memory", "plain prefill", "sparse",
			"offload", "offload, small", "offload, memcpy", "layer", "layer, several a step",
			"layer-chunked", "psa, small", "psa, layer", "psa in HBM", "select: offload, small",
			"gpu lookup: offload, small", "gpu lookup: layer"} {
			if model == "mha" && !slices.Contains(unshared, of) {
				continue
			}
			c := *all[model+"/"+of]
			c.spec.PrefixCache.Mode, c.lengths, c.content = sim.PrefixVLLM, hitLengths,
				hitContent(!c.spec.Sparse())
			c.preempts, c.evicts = false, false
			all[model+"/hits: "+of] = &c
			if of == "dense" {
				v1 := c
				v1.spec.Scheduler = "vllm-v1"
				all[model+"/hits: dense, vllm-v1"] = &v1
			}
			if of == "psa, small" { // two requests load one block, the second in an earlier round
				together := c
				for i := range hitLengths {
					together.arrive = append(together.arrive, des.Time(i+1)*des.Millisecond)
				}
				all[model+"/hits: psa, small, together"] = &together
			}
			if !c.spec.Offload.On {
				tree := c
				tree.spec.PrefixCache.Mode = sim.PrefixTree
				all[model+"/hits in a tree: "+of] = &tree
			}
		}
	}
}

// Every case with a prefix cache hits, what is found is skipped, and equal content is equal tokens.
// That its logits and its counts are right, the tests of all cases say.
func TestPrefixHitsAreSkipped(t *testing.T) {
	for name, c := range cases() {
		if c.content == nil || testing.Short() && name != "gqa/hits: offload, small" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := emulator.New(emulator.Config{Late: true, Seed: 11})
			defer m.Close()
			r := c.run(t, m)
			use := r.metrics.Summary().PrefixCache
			if use == nil || use.HitTokens < 3*64 {
				t.Fatalf("hits: %+v", use)
			}
			computed := int64(0)
			for at, spans := range r.prefilled {
				for _, s := range spans {
					if at[1] == 0 {
						computed += int64(s[1] - s[0])
					}
				}
			}
			again := use.Preempted // what a prefill computed that was preempted counts too
			if hit := use.HitTokens + again.HitTokens; computed+hit != use.PromptTokens+again.PromptTokens {
				t.Errorf("%d tokens computed, %d hit, %d asked for, %d again", computed, hit,
					use.PromptTokens, again.PromptTokens)
			}
			id := slices.Min(slices.Collect(maps.Keys(r.tokens))) // of the first request
			first, second, other := r.tokens[id], r.tokens[id+1], r.tokens[id+2]
			if !slices.Equal(first[:64], second[:64]) || slices.Equal(first[64:80], second[64:80]) ||
				slices.Equal(first[:64], other[:64]) ||
				!c.spec.Sparse() && !slices.Equal(first, r.tokens[id+6][:len(first)]) {
				t.Error("tokens are not those of the content")
			}
		})
	}
}
