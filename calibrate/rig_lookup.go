package calibrate

import (
	"fmt"
	"slices"

	"sparseserve/cuda"
)

// setupLookup readies the GPU's lookup of a layer, and the gather that takes its
// count from it and finds nothing to do, between two other kernels.
func (g *rig) setupLookup(s *cuda.Session, p Point) (*setup, error) {
	missing := int64(0)
	if p.Probe == probeLookupMissing {
		missing = p.At("missing_blocks")
	}
	l, err := g.lookupOf(s, p, missing)
	if err != nil {
		return nil, err
	}
	calls := []cuda.Operation{&cuda.EmptyArgs{}, &l.args, &l.gather, &cuda.EmptyArgs{}}
	if missing > 0 {
		calls = slices.Insert(calls, 1, cuda.Operation(&l.table))
	}
	return &setup{bench: cuda.Bench{Clock: cuda.EventClock, Calls: calls}, settle: g.settling(p), verify: l.verify}, nil
}

// lookedUp is one layer's lookup and what belongs to it.
type lookedUp struct {
	args   cuda.LookupArgs
	table  cuda.TableArgs    // takes what is missing from the tables
	gather cuda.FlashH2DArgs // of nothing: loads have their own probe
	list   []int32           // as they lie at args.List
	verify func(*cuda.Session) error
}

// lookupOf readies lists of the budget's blocks, anywhere in contexts of
// lookupBlocks. Where blocks are missing they are to be taken from the tables
// before each lookup: up to one of each list, or else whole lists, the last ones.
func (g *rig) lookupOf(s *cuda.Session, p Point, missing int64) (*lookedUp, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	const listed = liveBudget / blockTokens
	n, heads := p.At("requests"), int64(m.KVHeads)
	units, groupBytes := n*heads, int64(lookupBlocks*4)
	if missing > units && (missing > units*listed || missing%listed != 0) {
		return nil, fmt.Errorf("%d blocks missing of %d lists of %d: at most one each, or whole ones", missing, units, listed)
	}
	l := &lookedUp{}
	a := &l.args
	*a = cuda.LookupArgs{
		Pool: 1 << 40, BlockBytes: 4 * blockTokens * int64(m.HeadDim), Batch: int32(n), Heads: int32(heads), Stride: listed, PageStride: lookupBlocks, Frees: int32(missing),
	}
	entries, list, named := make([]int32, units*lookupBlocks), make([]int32, 0, units*listed), make([]int32, units)
	for i, slot := range g.r.Perm(len(entries)) {
		entries[i] = int32(slot) + 1
	}
	want := make([]int32, 0, units*listed)
	free, evicted := make([]int32, missing), make([]int64, missing)
	var tables cuda.Ptr
	set := g.setter(&err)
	set(&tables, func() (cuda.Ptr, error) { return upload(g, s, entries) })
	for u := range units {
		named[u] = listed
		for _, b := range g.r.Perm(lookupBlocks)[:listed] {
			list, want = append(list, int32(b)), append(want, entries[int(u)*lookupBlocks+b]-1)
		}
	}
	for i := range missing { // they get their slots in the order of the lists
		at := units*listed - missing + i
		if missing <= units { // the first entries of lists all over the batch
			at = i * units / missing * listed
		}
		evicted[i] = int64(tables) + at/listed*groupBytes + 4*int64(list[at])
		free[i] = want[at]
	}
	at, caps, pages := make([]int64, n), make([]int32, n), make([]int64, n*lookupBlocks)
	for i := range at {
		at[i], caps[i] = int64(tables)+int64(i)*heads*groupBytes, lookupBlocks
	}
	set(&a.Table, func() (cuda.Ptr, error) { return upload(g, s, at) })
	set(&a.Cap, func() (cuda.Ptr, error) { return upload(g, s, caps) })
	set(&a.Page, func() (cuda.Ptr, error) { return upload(g, s, pages) })
	set(&a.List, func() (cuda.Ptr, error) { return upload(g, s, list) })
	set(&a.Named, func() (cuda.Ptr, error) { return upload(g, s, named) })
	set(&a.Slot, func() (cuda.Ptr, error) { return upload(g, s, make([]int32, len(list))) })
	set(&a.Src, func() (cuda.Ptr, error) { return upload(g, s, make([]int64, len(list))) })
	set(&a.Dst, func() (cuda.Ptr, error) { return upload(g, s, make([]int64, len(list))) })
	set(&a.Loads, func() (cuda.Ptr, error) { return upload(g, s, make([]int64, 2)) })
	table := &l.table
	table.Evictions = int32(missing)
	if missing > 0 {
		set(&a.FreeSlot, func() (cuda.Ptr, error) { return upload(g, s, free) })
		set(&table.Evicted, func() (cuda.Ptr, error) { return upload(g, s, evicted) })
	}
	if err != nil {
		return nil, err
	}
	bytes, err := s.LookupState(a)
	if err != nil {
		return nil, err
	}
	if a.State, err = upload(g, s, make([]byte, bytes)); err != nil {
		return nil, err
	}
	l.list, l.gather = list, cuda.FlashH2DArgs{Src: a.Src, Dst: a.Dst, Count: int64(len(list)), BlockBytes: a.BlockBytes, Counted: a.Loads + 8}
	l.verify = func(s *cuda.Session) error {
		if err := s.Table(table, 0); err != nil {
			return err
		}
		if err := s.Lookup(a, 0); err != nil {
			return err
		}
		got, loads := make([]int32, len(want)), make([]int64, 1)
		if err := cuda.Download(s, loads, a.Loads); err != nil {
			return err
		}
		if err := cuda.Download(s, got, a.Slot); err != nil {
			return err
		}
		if loads[0] != missing || !slices.Equal(got, want) {
			return fmt.Errorf("%d blocks missing, want %d; or slots differ", loads[0], missing)
		}
		return nil
	}
	return l, nil
}

// lookupBlocks are those of a context of 8,192 tokens.
const lookupBlocks = 256

// setupTable readies the kernel that takes blocks from tables, alone.
func (g *rig) setupTable(s *cuda.Session, p Point) (*setup, error) {
	n := p.At("missing_blocks")
	entries, err := upload(g, s, make([]int32, 64*n))
	if err != nil {
		return nil, err
	}
	at := make([]int64, n)
	for i, e := range g.r.Perm(int(64 * n))[:n] {
		at[i] = int64(entries) + 4*int64(e)
	}
	a := &cuda.TableArgs{Evictions: int32(n)}
	if a.Evicted, err = upload(g, s, at); err != nil {
		return nil, err
	}
	return &setup{bench: cuda.Bench{Clock: cuda.EventClock, Calls: []cuda.Operation{&cuda.EmptyArgs{}, a, &cuda.EmptyArgs{}}}, settle: g.settling(p)}, nil
}
