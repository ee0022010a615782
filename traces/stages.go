package traces

import (
	"fmt"
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// staged is a process of rate 1 whose time runs r times as fast in a stage of r requests/s. This is
// exact: the n-th arrival comes when the integral of the rate reaches the n-th arrival of the
// process.
type staged struct {
	*process
	stages  [][]float64 // seconds, requests/s
	endless bool        // the last stage has no end

	i           int     // stage of the last arrival
	begin, done float64 // seconds and expected requests before that stage
}

func newStaged(s Spec, seed uint64) *staged {
	s.Rate = 1
	return &staged{process: newProcess(s, seed), stages: s.Stages, endless: s.Requests > 0}
}

// next returns the time of the next request, or io.EOF after the last stage.
func (s *staged) next() (des.Time, error) {
	own, err := s.process.next()
	if err != nil {
		return 0, err
	}
	for ; s.i < len(s.stages); s.i++ {
		seconds, rate := s.stages[s.i][0], s.stages[s.i][1]
		ahead, last := own.Seconds()-s.done, s.i == len(s.stages)-1
		if ahead < seconds*rate || last && s.endless {
			at := s.begin + ahead/rate
			if !last {
				at = min(at, s.begin+seconds)
			}
			if at > rows.Latest.Seconds() {
				return 0, fmt.Errorf("arrival after %.3g s: workload.stages are too slow for workload.requests",
					at)
			}
			return des.FromSeconds(at), nil
		}
		s.begin, s.done = s.begin+seconds, s.done+seconds*rate
	}
	return 0, io.EOF
}

// Expected returns the mean number of requests of all stages, and their length in seconds.
func (s Spec) Expected() (requests, seconds float64) {
	for _, stage := range s.Stages {
		requests, seconds = requests+stage[0]*stage[1], seconds+stage[0]
	}
	return requests, seconds
}

// MeanRate returns the mean request rate in requests/s; 0 if the spec does not set one.
func (s Spec) MeanRate() float64 {
	if requests, seconds := s.Expected(); seconds > 0 {
		return requests / seconds
	}
	return s.Rate
}

// checkStages rejects stages that are not pairs, never end or never begin.
func (s Spec) checkStages() error {
	if len(s.Stages) == 0 {
		return nil
	}
	text := strings.ReplaceAll(fmt.Sprint(s.Stages), " ", ", ")
	fault := func(i int, problem string) error {
		return fmt.Errorf("workload.stages = %s: stage %d %s; want [[seconds, requests/s], ...], as in "+
			"[[600, 5], [600, 10]]", text, i+1, problem)
	}
	for i, stage := range s.Stages {
		switch {
		case len(stage) != 2:
			return fault(i, "has "+rows.Plural(len(stage), "number"))
		case !(stage[0] > 0 && stage[0] <= 1e9):
			return fault(i, "lasts "+stats.Exact(stage[0])+" s, not above 0 and at most 1e9")
		case stage[1] != 0 && !(stage[1] >= 1e-9 && stage[1] <= 1e9):
			return fault(i, "has "+stats.Exact(stage[1])+" requests/s, not 0 or 1e-9 to 1e9")
		}
	}
	last := len(s.Stages) - 1
	switch n, _ := s.Expected(); {
	case n == 0:
		return fault(last, "ends without a request")
	case s.Requests > 0 && s.Stages[last][1] == 0:
		return fault(last, fmt.Sprintf("goes on until workload.requests = %d are out, but has 0 "+
			"requests/s", s.Requests))
	case s.Requests == 0 && n > mostRequests:
		return fmt.Errorf("workload.stages = %s: make some %.3g requests, at most %g can be run; "+
			"shorten them or set workload.requests", text, n, float64(mostRequests))
	}
	return nil
}

// mostRequests is the upper limit of workload.requests.
const mostRequests = 1e7
