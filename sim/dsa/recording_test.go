package dsa

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// drawnStep is what one request selected in one step, by group of the sparse layers.
type drawnStep struct {
	generated, candidates int
	rows                  []kv.Picks
}

var recordedShape = Shape{Layers: 3, KVHeads: 2, DenseLayers: 1, BlockTokens: 16, SinkBlocks: 1,
	WindowBlocks: 1, Candidates: 5, Seed: 3}

// drawRequest has Latest choose random candidates, step by step, some steps left out as a
// preemption does.
func drawRequest(t *rapid.T) []drawnStep {
	s := &recordedShape
	rows := NewLatest(s.groups())
	var steps []drawnStep
	generated, n := 0, s.Candidates+1
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		gap := rapid.SampledFrom([]int{1, 1, 1, 2, 4}).Draw(t, "gap")
		generated += gap
		n += rapid.IntRange(0, 40).Draw(t, "longer")
		step := drawnStep{generated: generated, candidates: n}
		for g := range s.groups() {
			in := make([]uint64, (n+63)/64)
			for _, b := range rapid.Permutation(rangeOf(n)).Draw(t, "candidates")[:s.Candidates] {
				in[b/64] |= 1 << (b % 64)
			}
			if err := rows.Choose(g, in, s.Candidates, len(steps) > 0 && gap == 1); err != nil {
				t.Fatal(err)
			}
			row := rows.Picks(g)
			row.Next, row.Dropped = slices.Clone(row.Next), slices.Clone(row.Dropped)
			row.Added, row.Came = slices.Clone(row.Added), slices.Clone(row.Came)
			step.rows = append(step.rows, row)
		}
		steps = append(steps, step)
	}
	return steps
}

func rangeOf(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// note records a drawn request's step i.
func note(r *RecordingWriter, id int, steps []drawnStep, i int) {
	r.Step(id, steps[i].generated)
	for g := range steps[i].rows {
		r.Add(id, &steps[i].rows[g])
	}
}

func recorded(t interface{ Fatal(...any) }, requests [][]drawnStep) []byte {
	var file bytes.Buffer
	r := NewRecordingWriter(&file, recordedShape)
	for i := 0; ; i++ { // side by side
		more := false
		for id, steps := range requests {
			if i < len(steps) {
				note(r, id, steps, i)
				more = true
			} else if i == len(steps) {
				if err := r.Finish(id, 100+id, 10); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !more && i > 8 {
			break
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// What was recorded comes back row by row, for all groups and for some; a step that is missing
// selects as the one before.
func TestReplayIsWhatWasRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := make([][]drawnStep, rapid.IntRange(1, 3).Draw(t, "requests"))
		for i := range requests {
			requests[i] = drawRequest(t)
		}
		file := recorded(t, requests)
		rec, err := OpenRecording(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if rec.Requests() != len(requests) || rec.Shape != recordedShape {
			t.Fatalf("%d requests of %+v", rec.Requests(), rec.Shape)
		}
		groups := []int32{0, 1, 2, 3, 4, 5}
		if rapid.Bool().Draw(t, "sampled") {
			groups = []int32{3, 4} // layer 1, head 1; layer 2, head 0
		}
		for id, steps := range requests {
			p, err := rec.Replay(id, 100+id, 10, groups)
			if err != nil {
				t.Fatal(err)
			}
			if len(steps) == 0 {
				continue
			}
			at, before := 0, make([][]uint16, len(groups))
			for generated := steps[0].generated; generated <= steps[len(steps)-1].generated; generated++ {
				if at+1 < len(steps) && steps[at+1].generated <= generated {
					at++
				}
				if err := p.Step(generated, steps[at].candidates); err != nil {
					t.Fatal(err)
				}
				for i, g := range groups {
					if g < 2 {
						continue // of the dense layer
					}
					row := p.Latest.Picks(i)
					want := steps[at].rows[g-2]
					if !slices.Equal(row.Next, want.Next) || row.Used != want.Used {
						t.Fatalf("request %d, token %d, group %d: %v, want %v", id, generated, g, row, want)
					}
					if row.Follows != (generated > steps[0].generated) {
						t.Fatalf("request %d, token %d, group %d: follows the step before: %v", id, generated,
							g, row.Follows)
					}
					if row.Follows {
						follow(t, before[i], row)
					}
					before[i] = slices.Clone(row.Next)
				}
			}
		}
	})
}

// twoSteps records a request that decodes two tokens.
func twoSteps() []drawnStep {
	steps := []drawnStep{{generated: 1, candidates: 9}, {generated: 2, candidates: 9}}
	for i := range steps {
		for range recordedShape.groups() {
			steps[i].rows = append(steps[i].rows, kv.Picks{Follows: i > 0,
				Next: []uint16{uint16(i), 2, 3, 5, 8}, Used: 5,
				Added: []uint16{0}, Came: []uint16{uint16(i)}, Dropped: []uint16{0}})
		}
	}
	return steps
}

// A recording cut short anywhere is refused, at the latest when what is missing is read.
func TestRecordingCutShort(t *testing.T) {
	file := recorded(t, [][]drawnStep{twoSteps(), twoSteps()})
	if _, err := OpenRecording(bytes.NewReader(file), int64(len(file))); err != nil {
		t.Fatal(err)
	}
	for n := range file {
		if _, err := OpenRecording(bytes.NewReader(file[:n]), int64(n)); err == nil {
			t.Fatalf("%d of %d bytes were taken for a recording", n, len(file))
		}
	}
}

// TestRecordingDamaged: whichever bit of a recording flips, it is refused, has another shape, or
// is replayed as it was.
func TestRecordingDamaged(t *testing.T) {
	file := recorded(t, [][]drawnStep{twoSteps(), twoSteps()})
	replayed := func(file []byte) (string, error) {
		rec, err := OpenRecording(bytes.NewReader(file), int64(len(file)))
		if err != nil || rec.Shape != recordedShape {
			return "", errors.Join(err, errors.New("another shape"))
		}
		var rows strings.Builder
		for id := range 2 {
			p, err := rec.Replay(id, 100+id, 10, []int32{2, 5})
			if err != nil {
				return "", err
			}
			for _, generated := range []int{1, 2} {
				if err := p.Step(generated, 9); err != nil {
					return "", err
				}
				for g := range 2 {
					row := p.Latest.Picks(g)
					fmt.Fprintln(&rows, row)
				}
			}
		}
		return rows.String(), nil
	}
	want, err := replayed(file)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for bit := range 8 * len(file) {
		damaged := slices.Clone(file)
		damaged[bit/8] ^= 1 << (bit % 8)
		if got, err := replayed(damaged); err != nil {
			noticed++
			if text := err.Error(); strings.HasPrefix(text, "zip:") || strings.HasSuffix(text, " EOF") &&
				!strings.Contains(text, "damaged") {
				t.Errorf("the error does not name the damaged data: %v", err)
			}
		} else if got != want {
			t.Errorf("bit %d of byte %d: replayed with other results", bit%8, bit/8)
		}
	}
	if noticed < 4*len(file) {
		t.Errorf("only %d of %d flipped bits noticed", noticed, 8*len(file))
	}
}

func TestReplayOfAnotherTrace(t *testing.T) {
	file := recorded(t, [][]drawnStep{{}})
	rec, err := OpenRecording(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rec.Replay(0, 101, 10, nil); err == nil ||
		!strings.Contains(err.Error(), "another trace") {
		t.Errorf("%v", err)
	}
	if _, err := rec.Replay(7, 100, 10, nil); err == nil ||
		!strings.Contains(err.Error(), "request 7 is not among the 1") {
		t.Errorf("%v", err)
	}
}
