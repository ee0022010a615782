package experiments

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// leastRate is where a search gives up: a system that cannot keep the service
// level at it has no goodput.
const leastRate = 0.001 // requests/s

// goodput looks for the largest rate at which each system keeps its service
// level, with each seed by itself: the same arrivals for every system.
func (l *Lab) goodput(e *paperExperiment) error {
	s, err := l.load(e)
	if err != nil {
		return err
	}
	c := *s.Variants[0].Config
	c.Rates = []float64{c.Rates[0]}
	points := c.Points()
	if l.Planned != nil {
		l.Planned(len(points))
	}
	workers := l.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	group, ctx := errgroup.WithContext(l.ctx)
	group.SetLimit(workers)
	found, hashes := make([]float64, len(points)), newHasher()
	for i, p := range points {
		group.Go(func() error {
			rate, err := s.Goodput.largest(func(rate float64) (bool, error) { return l.keeps(ctx, p, rate, hashes) })
			if found[i] = rate; err != nil {
				return fmt.Errorf("%s with seed %d: %w", p.System.Name, p.Seed, err)
			}
			if l.Finished != nil {
				l.Finished()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write([]string{"model", "system", "seed", "goodput_req_s"})
	for i, p := range points {
		w.Write([]string{p.Model, p.System.Name, strconv.FormatUint(p.Seed, 10), number(found[i])})
	}
	w.Flush()
	return writeFile(filepath.Join(l.Dir, e.Name, tableFile), out.Bytes())
}

// keeps says whether a point keeps its service level at a rate.
func (l *Lab) keeps(ctx context.Context, p Point, rate float64, hashes *hasher) (bool, error) {
	p.Workload.Rate = rate
	p.Name = pointName(p.System.Name, p.Workload, p.Seed)
	hash, err := hashes.hash(&p)
	if err != nil {
		return false, err
	}
	sum, err := l.one(ctx, &SweepPoint{Point: p, Hash: hash})
	return err == nil && sum.SLOMet, err
}

// largest brackets the largest rate that keeps the service level, going up or
// down by half at a time, and halves the bracket until it is narrow. It returns
// the lower end, 0 when no rate keeps it.
func (g *GoodputSearch) largest(keeps func(rate float64) (bool, error)) (float64, error) {
	const factor = 1.5
	low, high := 0.0, math.Inf(1)
	for rate := g.Start; low == 0 || math.IsInf(high, 1); {
		ok, err := keeps(rate)
		if err != nil {
			return 0, err
		}
		if ok {
			low = rate
			rate = math.Min(fourDigits(rate*factor), g.Max)
		} else {
			high = rate
			rate = fourDigits(rate / factor)
		}
		if low == g.Max || high < leastRate {
			return low, nil
		}
	}
	for high-low > g.Width*low {
		rate := fourDigits((low + high) / 2)
		if rate <= low || rate >= high {
			break
		}
		ok, err := keeps(rate)
		if err != nil {
			return 0, err
		}
		if ok {
			low = rate
		} else {
			high = rate
		}
	}
	return low, nil
}

// fourDigits rounds a rate, so that runs are named shortly.
func fourDigits(rate float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64)
	if err != nil {
		panic(err)
	}
	return v
}
