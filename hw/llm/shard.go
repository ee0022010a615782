package llm

import "fmt"

// Shard returns the part of the model on one of n GPUs under tensor parallelism (Shoeybi et al.,
// Megatron-LM, 2019). Query heads, KV heads, columns of FFNs and experts, and vocabulary are split.
// Norms, routers, the residual stream, latents with their projections, and indexers are replicated.
// Fewer KV heads than n are replicated, as in vLLM. Of E routed experts spread over e ranks
// (ExpertRanks), each rank has E / e, each split over n / e GPUs (vLLM's --enable-expert-parallel:
// e = n).
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

// noSpread returns an error if experts cannot be spread over ExpertRanks of n GPUs.
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

// SpreadError is the reason why experts cannot be spread over ExpertRanks GPUs.
type SpreadError struct{ why string }

func (e *SpreadError) Error() string { return e.why }

// Spread returns the number of ranks over which a shard's experts are spread.
func (m *Model) Spread() int {
	if m.Ranks > 1 {
		return max(1, m.ExpertRanks)
	}
	return 1
}

// GPUs returns the number of GPUs that share each layer.
func (m *Model) GPUs() int { return max(1, m.Ranks) }

// Logits returns the number of logits that each rank samples a token from.
func (m *Model) Logits() int { return max(m.Vocab, m.sampled) }
