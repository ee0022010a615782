package calibrate

import (
	"cmp"
	"slices"
)

// Limits bounds the plan on a machine.
type Limits struct {
	PoolGiB     int64 // largest pinned pool
	Threads     int   // CPUs
	DeviceBytes int64 // of the card's memory, for all buffers of a point
}

// Plan names the extent of a calibration.
type Plan string

// The plans.
const (
	Full  Plan = "full"  // under five minutes
	Quick Plan = "quick" // under one
)

// Minimum needs of any plan.
const (
	leastPoolGiB     = 1
	leastDeviceBytes = 8 << 30
	// Maximum memory of the points; set-ups allocate it.
	mostDeviceBytes = 12 << 30
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// stage is a part of the plan. Probes of one stage alternate by rank.
type stage int

// Stages in the order of measuring.
const (
	stageGEMM    stage = iota // first: it wakes the card up
	stagePrefill              // early: it shows whether the host is disturbed
	stageClock
	stageElementwise
	stageLaunch
	stageLink
	stagePrefillAttention
	stageSparsePrefill
	stageDecode
	stageGPUScatter
	stageSaveMemcpy
	stageFlashD2H
	stageSaveOverlap
	stageLoad // by pools, which only grow
)

// rank is the place of a point within its stage.
type rank [3]int

// planner collects the points of a plan.
type planner struct {
	plan    Plan
	limits  Limits
	planned []*planned
}

type planned struct {
	stage stage
	rank  rank
	Point
}

// pick returns the sizes for the current plan.
func pick[T any](p *planner, full, quick T) T {
	if p.plan == Quick {
		return quick
	}
	return full
}

// add appends points to a stage.
func (p *planner) add(s stage, points ...Point) {
	for _, at := range points {
		p.addAt(s, rank{}, at)
	}
}

func (p *planner) addAt(s stage, r rank, at Point) {
	p.planned = append(p.planned, &planned{s, r, at})
}

// points lists the points of a plan on a machine, in order.
func points(plan Plan, limits Limits) []Point {
	p := &planner{plan: plan, limits: limits}
	for _, c := range costs {
		c.points(p)
	}
	slices.SortStableFunc(p.planned, func(a, b *planned) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), slices.Compare(a.rank[:], b.rank[:]))
	})
	all := make([]Point, len(p.planned))
	for i, at := range p.planned {
		all[i] = at.Point
	}
	return all
}
