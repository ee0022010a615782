package capacity

import (
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/traces"
)

// mostSampled is the maximum number of requests read from a file; sampledRequests is the number
// drawn from an endless workload.
const mostSampled, sampledRequests = 1_000_000, 10_000

// length is the number of tokens of one request.
type length struct{ prompt, output int }

// samples caches the request lengths of workloads, including turns of sessions.
type samples map[string][]length

// of returns the request lengths of a point. A generated workload is sampled unless whole is set.
func (s samples) of(p *config.Point, whole bool) ([]length, error) {
	model, err := llm.Load(p.Model)
	if err != nil {
		return nil, err
	}
	w := p.Workload
	if !whole && !w.FromFile() && w.Requests > 0 {
		w.Requests = sampledRequests
	}
	key := fmt.Sprint(model.Counter(), p.Seed, w)
	if all, ok := s[key]; ok {
		return all, nil
	}
	all, err := lengthsOf(w, p.Seed, &model)
	if err == nil {
		s[key] = all
	}
	return all, err
}

// lengthsOf reads or draws the lengths of a workload's requests.
func lengthsOf(w traces.Spec, seed uint64, model *llm.Model) (all []length, err error) {
	most := mostSampled
	if !w.FromFile() && w.Requests == 0 {
		most = sampledRequests
	}
	stream, err := traces.Open(w, seed, traces.Tokenizer(model.Counter()))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for turns, err := range stream.Whole() {
		if err != nil {
			return nil, err
		}
		for _, a := range turns {
			all = append(all, length{prompt: a.Prompt, output: a.Output})
		}
		if len(all) >= most {
			break
		}
	}
	return all, nil
}
