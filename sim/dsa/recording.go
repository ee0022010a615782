package dsa

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Recording reads the output of a RecordingWriter. It reads a request's selections step by step
// on demand. Safe for concurrent use.
type Recording struct {
	Shape
	requests map[string]*zip.File
}

// OpenRecording reads the index of a recording of size bytes. It fails if the recording is
// damaged.
func OpenRecording(r io.ReaderAt, size int64) (*Recording, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a recording of selections, or cut short: %w", err)
	}
	c := &Recording{requests: map[string]*zip.File{}}
	if err := json.Unmarshal([]byte(archive.Comment), &c.Shape); err != nil {
		return nil, fmt.Errorf("shape of the recording: %s", files.JSONWords(err))
	}
	if s := &c.Shape; s.Layers < 1 || s.KVHeads < 1 || s.DenseLayers < 0 || s.DenseLayers > s.Layers ||
		s.Candidates < 1 || s.Candidates > MaxCandidates {
		return nil, fmt.Errorf("shape of the recording: %d layers, %d KV heads, %d dense layers, %d "+
			"candidates", s.Layers, s.KVHeads, s.DenseLayers, s.Candidates)
	}
	for _, f := range archive.File {
		c.requests[f.Name] = f
	}
	return c, nil
}

// Requests returns the number of recorded requests.
func (c *Recording) Requests() int { return len(c.requests) }

// Replay replays one request's selections.
type Replay struct {
	Latest    *Latest
	request   int
	k         int   // candidates selected before the first recorded step
	row       []int // row of each group of the sparse layers, -1 if not wanted
	added     []uint16
	dropped   []uint16
	in        *bufio.Reader
	generated int // tokens generated before the next entry's step; 0 = no entry
	started   bool
}

// Replay starts the replay of a request with the given prompt and output tokens; it fails if
// they differ from the recording. It keeps the selections of the given groups (layer*KVHeads +
// head), in rows in the same order. Groups of dense layers have no selection.
func (c *Recording) Replay(request, prompt, output int, groups []int32) (*Replay, error) {
	f, ok := c.requests[strconv.Itoa(request)]
	if !ok {
		return nil, fmt.Errorf("request %d is not among the %d recorded ones", request, len(c.requests))
	}
	if now := tokensOf(prompt, output); f.Comment != now {
		return nil, fmt.Errorf("request %d has %s tokens, %s when selections were recorded: another "+
			"trace or seed", request, now, f.Comment)
	}
	text, err := open(f)
	if err != nil {
		return nil, fmt.Errorf("recorded selections of request %d are damaged: %w", request, err)
	}
	p := &Replay{Latest: NewLatest(len(groups)), request: request, k: c.Candidates,
		row: make([]int, c.groups()), in: bufio.NewReader(text)}
	for i := range p.row {
		p.row[i] = -1
	}
	for i, g := range groups {
		if g := int(g) - c.DenseLayers*c.KVHeads; g >= 0 {
			p.row[g] = i
		}
	}
	return p, p.readStep()
}

// open verifies the checksum of a file and opens it.
func open(f *zip.File) (io.Reader, error) {
	text, err := f.Open()
	if err == nil {
		_, err = io.Copy(io.Discard, text)
	}
	if err != nil {
		return nil, err
	}
	return f.Open()
}

// Step advances to the decode step after the given number of generated tokens, with n candidate
// blocks. If the step was not recorded because the request was preempted, it repeats the
// selection of the step before.
func (p *Replay) Step(generated, n int) error {
	if !p.started && (p.generated == 0 || p.generated > generated) {
		for g := range p.Latest.rows {
			p.Latest.first(g, min(p.k, n))
		}
	}
	applied := 0
	for ; p.generated > 0 && p.generated <= generated; applied++ {
		if err := p.apply(n, p.started && applied == 0); err != nil {
			return fmt.Errorf("recorded selections of request %d, token %d: %w", p.request, generated, err)
		}
		p.started = true
		if err := p.readStep(); err != nil {
			return err
		}
	}
	if applied == 0 && p.started {
		for g := range p.Latest.rows {
			p.Latest.keep(g)
		}
	}
	return nil
}

// readStep reads the step of the next entry.
func (p *Replay) readStep() error {
	v, err := binary.ReadUvarint(p.in)
	if err != nil && err != io.EOF {
		return fmt.Errorf("recorded selections of request %d: %w", p.request, inStep(err))
	}
	p.generated = int(v)
	return nil
}

// apply reads the entry's rows; follows reports whether the current rows are from the step
// before.
func (p *Replay) apply(n int, follows bool) error {
	for _, g := range p.row {
		tag, err := p.number(n + 1)
		if err != nil {
			return err
		}
		if tag == 0 {
			err = p.whole(g, n, follows)
		} else {
			err = p.changes(g, n, tag-1, follows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Replay) whole(g, n int, follows bool) error {
	used, err := p.number(n)
	if err != nil {
		return err
	}
	if p.added, err = p.list(p.added, n); err != nil {
		return err
	}
	if used > len(p.added) {
		return fmt.Errorf("%d blocks attended to of %d", used, len(p.added))
	}
	if g >= 0 {
		p.Latest.spare = append(p.Latest.spare[:0], p.added...)
		p.Latest.set(g, used, follows)
	}
	return nil
}

func (p *Replay) changes(g, n, dropped int, follows bool) (err error) {
	if p.dropped, err = p.blocks(p.dropped, dropped, n); err != nil {
		return err
	}
	if p.added, err = p.list(p.added, n); err != nil || g < 0 {
		return err
	}
	return p.Latest.alter(g, p.dropped, p.added, follows)
}

// list reads a length and this number of candidates.
func (p *Replay) list(dst []uint16, n int) ([]uint16, error) {
	count, err := p.number(n)
	if err != nil {
		return nil, err
	}
	return p.blocks(dst, count, n)
}

func (p *Replay) blocks(dst []uint16, count, n int) ([]uint16, error) {
	dst = dst[:0]
	for range count {
		b, err := p.number(n - 1)
		if err != nil {
			return nil, err
		}
		dst = append(dst, uint16(b))
	}
	return dst, nil
}

// number reads a number and returns an error if it exceeds most.
func (p *Replay) number(most int) (int, error) {
	v, err := binary.ReadUvarint(p.in)
	switch {
	case err != nil:
		err = inStep(err)
	case v > uint64(most):
		err = fmt.Errorf("%d where at most %d can be", v, most)
	}
	return int(v), err
}

// inStep is the error for a stream that ends within a step or has an invalid number.
func inStep(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("damaged: its data end within a step")
	}
	return errors.New("damaged: no number where one is wanted")
}
