package calibrate

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

// planner collects the points of a plan.
type planner struct {
	plan   Plan
	limits Limits
	points []Point
}

// pick returns the sizes for the current plan.
func pick[T any](p *planner, full, quick T) T {
	if p.plan == Quick {
		return quick
	}
	return full
}

// add appends points, which are measured in this order.
func (p *planner) add(points ...Point) { p.points = append(p.points, points...) }

// points lists the points of a plan on a machine, in order.
func points(plan Plan, limits Limits) []Point {
	p := &planner{plan: plan, limits: limits}
	for _, c := range costs {
		c.points(p)
	}
	return p.points
}
