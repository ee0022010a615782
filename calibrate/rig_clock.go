package calibrate

import (
	"errors"
	"math"
	"slices"
	"time"

	"sparseserve/cuda"
)

// How a sample of the clock comes about: rested, linears run for the point's time, and
// those of the next clockLayers layers are timed; or they run for long enough to lower
// the clock and then not for the point's time, and what is timed is as long as the
// clock may stay high: how much faster that is says for how long it did. A point has
// clockRounds samples.
const (
	restedTime  = 200 * time.Millisecond
	wornTime    = 200 * time.Millisecond
	clockRounds = 5
	clockLayers = 4
	restCopies  = 16
	restBytes   = 256 * mib
)

// restBatch are the requests, of restContext tokens, whose decode is a rest.
const (
	restBatch   = 8
	restContext = 8192
)

// prepareClock readies linears and what the card does between: copies within HBM, on
// which it draws far less, dense decode attention or nothing.
func (g *rig) prepareClock(p Point) (Timed, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	var work, rest paced
	layers := clockLayers
	if p.Probe != probeClock {
		layers = int(p.At("layers"))
	}
	var timed []cuda.Operation
	err = g.lib.Do(func(s *cuda.Session) error {
		calls, verify, err := g.linearsOp(s, m, p.At("tokens"))
		c := &cuda.MemcpyArgs{Bytes: restBytes}
		set := g.setter(&err)
		set(&c.Src, func() (cuda.Ptr, error) { return g.zeros(s, restBytes) })
		set(&c.Dst, func() (cuda.Ptr, error) { return g.zeros(s, restBytes) })
		if err == nil {
			err = s.DeviceSync()
		}
		if err == nil {
			err = verify(s)
		}
		if err != nil {
			return err
		}
		work.calls = slices.Repeat(calls, clockLayers)
		timed = slices.Repeat(calls, layers)
		rest.calls = slices.Repeat([]cuda.Operation{c}, restCopies)
		if p.Probe == probeRestedDense {
			d, err := g.setupDecode(s, point(probeDense, p.Shape, restBatch, restContext))
			if err != nil {
				return err
			}
			rest.calls = slices.Repeat(d.bench.Calls, restCopies)
		}
		return errors.Join(work.measure(s), rest.measure(s))
	})
	if err != nil {
		return nil, err
	}
	round := func(s *cuda.Session) error {
		if p.Probe == probeClock {
			return errors.Join(rest.run(s, restedTime), work.run(s, time.Duration(p.At("after_ms"))*time.Millisecond))
		}
		long := time.Duration(p.At("rest_ms")) * time.Millisecond
		if p.Probe == probeRestedIdle {
			err := work.run(s, wornTime)
			time.Sleep(long)
			return err
		}
		return errors.Join(work.run(s, wornTime), rest.run(s, long))
	}
	var ready []float64
	return func(_, repeats int) ([]float64, error) {
		err := g.lib.Do(func(s *cuda.Session) error {
			if len(ready) >= repeats {
				return nil
			}
			for range max(repeats, clockRounds) {
				if err := round(s); err != nil {
					return err
				}
				t, err := s.Bench(cuda.Bench{Calls: timed, Repeats: 1})
				if err != nil {
					return err
				}
				ready = append(ready, t[0]*1e-3/float64(layers))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		samples := ready[:repeats]
		ready = ready[repeats:]
		return samples, nil
	}, nil
}

// paced are calls whose time is known, so that they can run for a given one.
type paced struct {
	calls []cuda.Operation
	each  time.Duration
}

func (p *paced) measure(s *cuda.Session) error {
	ms, err := s.Bench(cuda.Bench{Calls: p.calls, Warmup: 2, Repeats: 5})
	if err == nil {
		p.each = max(time.Microsecond, time.Duration(medianOf(ms).Value*float64(time.Millisecond)))
	}
	return err
}

// run takes about as long as asked: nothing where that is less than half of what the
// calls take once.
func (p *paced) run(s *cuda.Session, long time.Duration) error {
	n := int(math.Round(float64(long) / float64(p.each)))
	if n == 0 {
		return nil
	}
	_, err := s.Bench(cuda.Bench{Calls: p.calls, Repeats: n})
	return err
}

// setupChunk readies a chunk's layers, which share what power the card may draw.
func (g *rig) setupChunk(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	return g.layersOp(s, m, p.At("tokens"), p.At("prefix_tokens"))
}
