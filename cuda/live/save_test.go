package live_test

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// A block that is loaded before it is in DRAM is waited for, whatever the second thread has left to
// do. Most saves are over before anyone wants their blocks; here they begin when nothing else goes
// on, so that a missing wait shows at the next load.
func TestSavesMayTakeAsLongAsTheyLike(t *testing.T) {
	all := cases()
	names := []string{
		"mha/layer-chunked", "gqa/select: layer-chunked", "gqa/layer", "mha/layer, several a step",
		"mha/select: offload, small",
		"mha/offload, memcpy", "gqa/offload, memcpy and gpu", "gqa/psa, layer",
		"mha/psa, prefills set back",
	}
	if testing.Short() {
		names = names[1:2]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(1)
			if strings.HasSuffix(name, "layer-chunked") {
				seeds = 2
			}
			for seed := range seeds {
				tardyRun(t, all[name], seed)
			}
		})
	}
}

func tardyRun(t *testing.T, c *scenario, seed uint64) {
	on := emulator.New(emulator.Config{Late: true, Seed: seed})
	defer on.Close()
	m := &tardy{Machine: on}
	if seed > 0 {
		m.random = rand.New(rand.NewPCG(seed, 1))
	}
	c.run(t, m).check(t)
	if m.held == 0 {
		t.Error("no save was held back")
	}
}

// tardy is a machine whose saves begin only when the thread that computes stays away, which it does
// while it waits for one.
type tardy struct {
	live.Machine
	random *rand.Rand   // lets a third of the saves pass; nil: none
	calls  atomic.Int64 // of the thread that computes, that have begun and that have ended
	second bool         // the second thread has come
	stream cuda.Stream  // the second thread's
	held   int          // saves
}

// away is longer than the thread that computes takes from one call to the next. Where it is not, a
// save begins earlier and no harm is done.
const away = time.Millisecond

// hold returns once the thread that computes waits.
func (m *tardy) hold() {
	if m.random != nil && m.random.IntN(3) == 0 {
		return
	}
	m.held++
	for {
		calls := m.calls.Load()
		time.Sleep(away)
		if calls%2 == 0 && calls == m.calls.Load() {
			return
		}
	}
}

// StreamWait is where other engines' saves begin.
func (m *tardy) StreamWait(s cuda.Stream, e cuda.Event) error {
	if s == m.stream {
		m.hold()
	}
	return m.Machine.StreamWait(s, e)
}

// Init is called by the second thread only, whose stream follows.
func (m *tardy) Init(device int) error {
	m.second = true
	return m.Machine.Init(device)
}

func (m *tardy) StreamCreate(high bool) (cuda.Stream, error) {
	s, err := m.Machine.StreamCreate(high)
	if m.second {
		m.stream = s
	}
	return s, err
}

func (m *tardy) by(s cuda.Stream, call func() error) error {
	if s != m.stream {
		m.calls.Add(1)
		defer m.calls.Add(1)
	}
	return call()
}

func (m *tardy) StreamSync(s cuda.Stream) error {
	return m.by(s, func() error { return m.Machine.StreamSync(s) })
}

func (m *tardy) Launch(op cuda.Operation, s cuda.Stream) error {
	switch op.(type) {
	case *cuda.SaveArgs:
		m.hold()
	case *cuda.MemcpyArgs, *cuda.LinearArgs, *cuda.GPUScatterArgs:
		return m.by(s, func() error { return m.Machine.Launch(op, s) })
	}
	return m.Machine.Launch(op, s)
}

// Memory grows in time that no step counts, so no save may begin meanwhile but the one that was
// about to.
func TestSavesStandStillWhileMemoryGrows(t *testing.T) {
	for _, name := range []string{"mha/offload, memcpy", "gqa/offload, memcpy and gpu", "gqa/layer"} {
		t.Run(name, func(t *testing.T) {
			on := emulator.New(emulator.Config{})
			defer on.Close()
			m := &growing{Machine: on}
			cases()[name].run(t, m).check(t)
			if m.grew == 0 || m.began == 0 {
				t.Errorf("memory grew %d times after %d saves: the test proves nothing", m.grew, m.began)
			}
			if m.most > 1 {
				t.Errorf("%d saves began while memory grew once", m.most)
			}
		})
	}
}

// growing is a machine that is slow to pin memory and to save.
type growing struct {
	live.Machine
	second      bool // the second thread has come
	stream      cuda.Stream
	grows       atomic.Bool
	meanwhile   atomic.Int64 // saves that began while it grows
	most        int64        // of these at one time
	grew, began int          // times that memory grew while the second thread ran; saves
}

func (m *growing) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	if pages == cuda.HugePages && m.second {
		m.grew++
		m.meanwhile.Store(0)
		m.grows.Store(true)
		time.Sleep(5 * time.Millisecond)
		m.grows.Store(false)
		m.most = max(m.most, m.meanwhile.Load())
	}
	return m.Machine.HostAlloc(bytes, pages)
}

func (m *growing) Init(device int) error {
	m.second = true
	return m.Machine.Init(device)
}

func (m *growing) StreamCreate(high bool) (cuda.Stream, error) {
	s, err := m.Machine.StreamCreate(high)
	if m.second {
		m.stream = s
	}
	return s, err
}

// begin is the start of a save, which then needs a while.
func (m *growing) begin() {
	m.began++
	if m.grows.Load() {
		m.meanwhile.Add(1)
	}
	time.Sleep(time.Millisecond)
}

func (m *growing) Launch(op cuda.Operation, s cuda.Stream) error {
	switch op.(type) {
	case *cuda.SaveArgs:
		m.begin()
	case *cuda.MemcpyBlocksArgs, *cuda.GPUScatterArgs:
		if s == m.stream {
			m.begin()
		}
	}
	return m.Machine.Launch(op, s)
}
