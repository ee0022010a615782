package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// A device that looks listed blocks up in tables of its own finds each in the
// slot that the cache gave it, and misses what the cache misses in the order in
// which it is told of it, whatever is evicted, set back or preempted.
func TestDetailSufficesForTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Selection.On, c.spec.Offload.On, c.spec.Offload.Load, c.spec.Offload.Lookup = true, true,
			"flash",
			sim.LookupGPU
		if rapid.Bool().Draw(t, "ahead") { // blocks that are only loaded are rare
			c.spec.Selection.Policy, c.spec.Selection.Pipelined = "psa", true
		}
		c.follow(t)
	})
}

// What the device itself selects is known too late for the host's cache to go ahead of the lookup.
func TestNoTablesForADeviceThatSelects(t *testing.T) {
	spec := sim.Spec{
		Selection:   sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 64, RecentBlocks: 1},
		BlockTokens: 16,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Lookup: sim.LookupGPU,
			Eviction: "lru", Pool: "unified", WorkingSetSteps: 1}, DRAMGiB: 1, Scheduler: "vllm",
		MaxRequests: 1, MaxTokens: 64,
		Prefill:    sim.PrefillSpec{Split: "layer", ChunkTokens: 64},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	model := tiny(1, 1)
	cfg := sim.Config{
		Spec: spec, Geometry: model.Geometry(16), HBMBytes: 1 << 20, Library: library(t, &spec),
		Addressed: true, Model: sim.Model{Layers: 1, KVHeads: 1, TokenValues: model.TokenValues(),
			MaxContext: model.MaxContext},
	}
	if _, err := sim.NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	cfg.DeviceSelects = true
	if _, err := sim.NewServer(cfg); err == nil || !strings.Contains(err.Error(), `offload.lookup = "host"`) {
		t.Errorf("error is %v, want one of offload.lookup", err)
	}
	cfg.Spec.Offload.Lookup = "host"
	if _, err := sim.NewServer(cfg); err != nil {
		t.Error(err)
	}
}

// tables belong to a device that looks blocks up itself.
type tables struct {
	id    map[int32]int   // of requests, by handle
	slot  map[place]int32 // of what is in HBM
	found []int32         // slots of the layer's lists, at the places of their blocks
}

func (k *tables) begin(s *sim.Step) {
	for _, d := range s.Dropped {
		for p := range k.slot {
			if p.id == d.ID {
				delete(k.slot, p)
			}
		}
		delete(k.id, d.Seq)
	}
	for i := range s.Rows {
		k.id[s.Rows[i].Seq] = s.Rows[i].ID
	}
}

func (k *tables) place(ref *kv.BlockRef) (place, error) {
	id, ok := k.id[ref.Seq]
	if !ok {
		return place{}, fmt.Errorf("%+v is of no request that is here", *ref)
	}
	return place{id, int(ref.Group), int(ref.Block)}, nil
}

func (k *tables) take(refs []kv.BlockRef) error {
	for i := range refs {
		p, err := k.place(&refs[i])
		if err != nil {
			return err
		}
		if slot, ok := k.slot[p]; !ok || slot != int32(refs[i].Slot) {
			return fmt.Errorf("%v loses slot %d, the table has it in %d (%v)", p, refs[i].Slot, slot, ok)
		}
		delete(k.slot, p)
	}
	return nil
}

func (k *tables) give(ref *kv.BlockRef) error {
	p, err := k.place(ref)
	if err != nil {
		return err
	}
	if slot, ok := k.slot[p]; ok {
		return fmt.Errorf("%v gets slot %d, the table has it in %d", p, ref.Slot, slot)
	}
	k.slot[p] = int32(ref.Slot)
	return nil
}

// change applies what a layer's Move reports in addition to decodes' misses, and returns these.
func (k *tables) change(m *kv.Moves, decodes []sim.Row) (misses []kv.BlockRef, err error) {
	if err := k.take(m.Evicted[:m.EvictedBefore]); err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	for i := range m.Seated {
		if err := k.give(&m.Seated[i]); err != nil {
			return nil, fmt.Errorf("to write: %w", err)
		}
	}
	for _, ref := range m.Missed {
		if !slices.Contains(m.LoadRefs, ref) {
			return nil, fmt.Errorf("%+v is missed and not loaded", ref)
		}
		if slices.ContainsFunc(decodes, func(r sim.Row) bool { return r.Decode && r.Seq == ref.Seq }) {
			misses = append(misses, ref)
		} else if err := k.give(&ref); err != nil {
			return nil, fmt.Errorf("of a prefill: %w", err)
		}
	}
	if len(m.Missed) != len(m.LoadRefs) {
		return nil, fmt.Errorf("%d are missed, %d loaded", len(m.Missed), len(m.LoadRefs))
	}
	return misses, k.take(m.Evicted[m.EvictedBefore:])
}

// lookUp walks a layer's lists; missing ones get the slots of misses in order.
func (m *shadow) lookUp(layer int, w *sim.Work) error {
	k, l, heads := &m.tables, w.Lists, m.model.KVHeads
	misses, err := k.change(&m.moves, m.step.Rows)
	if err != nil || w.Decodes == 0 {
		return err
	}
	if l.Slot != nil {
		return errors.New("the lists have slots")
	}
	k.found = append(k.found[:0], make([]int32, w.Decodes*heads*l.Stride)...)
	for unit := range w.Decodes * heads {
		named := l.Count
		if l.ListedAhead != nil {
			named = l.ListedAhead
		}
		for entry, b := range l.Block[unit*l.Stride:][:named[unit]] {
			p := place{m.step.Rows[unit/heads].ID, layer*heads + unit%heads, int(b)}
			if _, ok := k.slot[p]; !ok {
				if len(misses) == 0 {
					return fmt.Errorf("%v is missing, which nobody tells", p)
				}
				if q, err := k.place(&misses[0]); err != nil || p != q {
					return fmt.Errorf("%v is missing, told of is %v (%v)", p, q, err)
				}
				round := 0
				if m.moves.InRounds && entry >= int(l.FirstRound[unit]) {
					round = entry / m.spec.Selection.Microbatch
				}
				if int(misses[0].Round) != round {
					return fmt.Errorf("%v is needed in round %d, told of is %d", p, round, misses[0].Round)
				}
				k.slot[p], misses = int32(misses[0].Slot), misses[1:]
			}
			k.found[unit*l.Stride+entry] = k.slot[p]
		}
	}
	if len(misses) > 0 {
		return fmt.Errorf("%+v is in the table and not in the cache", misses[0])
	}
	return nil
}
