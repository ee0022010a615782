package capacity

import (
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
)

// mostSampled is the maximum number of requests read from a file; sampledRequests is the number
// drawn from an endless workload.
const mostSampled, sampledRequests = 1_000_000, 10_000

// samples holds the request lengths of a workload, by tokenizer, including turns of sessions.
type samples map[string][]length

func (s samples) of(p *config.Point) ([]length, error) {
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return nil, err
	}
	if all, ok := s[model.Tokenizer]; ok {
		return all, nil
	}
	w := p.Workload
	if !w.FromFile() && w.Requests > 0 {
		w.Requests = sampledRequests
	}
	all, err := lengthsOf(w, p.Seed, &model)
	if err == nil {
		s[model.Tokenizer] = all
	}
	return all, err
}

// lengthsOf reads or draws the lengths of a workload's requests.
func lengthsOf(w traces.Spec, seed uint64, model *hw.Model) (all []length, err error) {
	most := mostSampled
	if !w.FromFile() && w.Requests == 0 {
		most = sampledRequests
	}
	stream, err := traces.Open(w, seed, traces.Tokenizer(model.Counter()))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for len(all) < most {
		a, more, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		for more {
			all = append(all, length{prompt: a.Prompt, output: a.Output})
			if a, more, err = stream.Follow(a, des.Time(0), false); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
