package hw

import (
	"math"
	"strings"
	"testing"
)

func TestKVBudgetFacts(t *testing.T) {
	p := mustProfile(t, "a100-40gb")
	for _, c := range []struct {
		model       string
		gib, tokens float64
	}{{"lwm-7b", 22, 43e3}, {"llama3-8b", 19, 155e3}} {
		m := mustModel(t, c.model)
		h, err := p.KVBudget(m, 0.9, 2048, 256)
		if err != nil {
			t.Fatal(err)
		}
		if sum := h.Weights + h.Runtime + h.Activations + h.Logits + h.KV; sum != h.Usable {
			t.Errorf("%s: parts add up to %d, usable is %d", c.model, sum, h.Usable)
		}
		gib, tokens := float64(h.KV)/(1<<30), float64(h.KV/m.KVBytesPerToken())
		if math.Abs(gib/c.gib-1) > 0.1 || math.Abs(tokens/c.tokens-1) > 0.1 {
			t.Errorf("a100-40gb, %s: KV at 0.9 is %.1f GiB or %.0f tokens, want %g and %g", c.model, gib,
				tokens, c.gib, c.tokens)
		}
	}
}

func TestKVBudgetErrors(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "lwm-7b")
	big := *m
	big.Name, big.Layers = "big", 120
	_, err := p.KVBudget(&big, 0.9, 2048, 256)
	wantError(t, "too large", err, "big does not fit a100-40gb", "36.00 GiB usable", "weights need 45",
		"runtime 1.20 GiB", "activations 0.18 GiB", "logits 0.06 GiB")
	if strings.Count(err.Error(), "\n") > 0 {
		t.Error("one line, please")
	}
	for _, c := range []struct {
		utilisation      float64
		tokens, requests int
	}{{0, 1, 1}, {1.1, 1, 1}, {0.9, 0, 1}, {0.9, 1, 0}} {
		if _, err := p.KVBudget(m, c.utilisation, c.tokens, c.requests); err == nil {
			t.Errorf("%+v: want an error", c)
		}
	}
}
