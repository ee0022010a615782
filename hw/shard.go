package hw

import "fmt"

// Shard returns what one of n GPUs holds of the model under tensor parallelism (Shoeybi et al.,
// Megatron-LM, 2019): query heads, KV heads, columns of FFNs and experts, and vocabulary are split;
// norms, routers, the residual stream, latents with the projections to them, and indexers are whole
// on each. KV heads fewer than n are copied, as vLLM has it. Of E routed experts spread over e
// ranks (ExpertRanks) each has E / e, cut over n / e (vLLM's --enable-expert-parallel: e = n).
func (m *Model) Shard(n int) (Model, error) {
	shard := *m
	e := max(1, m.ExpertRanks)
	switch {
	case m.noSpread(n) != nil:
		return shard, m.noSpread(n)
	case n == 1:
		return shard, nil
	case n < 1 || n&(n-1) != 0:
		return shard, fmt.Errorf("tensor parallelism of %d: want 1, 2, 4 or 8", n)
	case m.QHeads%n != 0:
		return shard, fmt.Errorf("%d GPUs do not divide the %d query heads of %s", n, m.QHeads, m.Name)
	case m.KVHeads%n != 0 && n%m.KVHeads != 0:
		return shard, fmt.Errorf("%d GPUs do not divide the %d KV heads of %s", n, m.KVHeads, m.Name)
	case m.FFN%n != 0:
		return shard, fmt.Errorf("%d GPUs do not divide the FFN of %s, %d columns", n, m.Name, m.FFN)
	case m.ExpertFFN%n != 0 && (e == 1 || m.SharedExperts > 0) || m.ExpertFFN%(n/e) != 0:
		return shard, fmt.Errorf("%d GPUs do not divide the experts of %s, %d columns", n, m.Name,
			m.ExpertFFN)
	}
	shard.QHeads /= n
	shard.KVHeads = max(1, m.KVHeads/n)
	shard.FFN /= n
	shard.ExpertFFN /= n / e
	shard.Vocab = (m.Vocab + n - 1) / n
	shard.Ranks, shard.sampled = n, m.Vocab
	return shard, nil
}

// noSpread says why experts cannot be spread over ExpertRanks of n GPUs.
func (m *Model) noSpread(n int) error {
	switch e := m.ExpertRanks; {
	case e <= 1:
	case !m.IsMixture():
		return &SpreadError{fmt.Sprintf("%s has no experts", m.Name)}
	case n%e != 0:
		return &SpreadError{fmt.Sprintf("want a divisor of the %d GPUs that share %s", n, m.Name)}
	case m.Experts%e != 0:
		return &SpreadError{fmt.Sprintf("%d GPUs do not divide the %d experts of %s", e, m.Experts,
			m.Name)}
	}
	return nil
}

// SpreadError says why experts cannot be spread over so many GPUs.
type SpreadError struct{ why string }

func (e *SpreadError) Error() string { return e.why }

// spread is over how many ranks the experts of a shard are spread.
func (m *Model) spread() int {
	if m.Ranks > 1 {
		return max(1, m.ExpertRanks)
	}
	return 1
}

// ranks is how many GPUs share each layer.
func (m *Model) ranks() int { return max(1, m.Ranks) }

// logits is how many logits a token is drawn from, on each rank.
func (m *Model) logits() int { return max(m.Vocab, m.sampled) }
