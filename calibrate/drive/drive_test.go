package drive

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/builtin"
)

// direct returns an empty folder on a drive: for temporary files or, where these are in memory, in
// this one. It skips a test where both are.
func direct(t *testing.T) string {
	t.Helper()
	here, err := os.MkdirTemp(".", "drive-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(here) })
	for _, dir := range []string{t.TempDir(), here} {
		var f *os.File
		if f, err = openDirect(filepath.Join(dir, "try"), os.O_RDWR|os.O_CREATE); err != nil {
			continue
		}
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Skipf("no file past the page cache here, nor for temporary files: %v", err)
	return ""
}

// What is measured becomes a file that loads as the same drive, and nothing is left on the drive.
func TestMeasuredDriveLoads(t *testing.T) {
	dir := direct(t)
	var log []string
	found, err := Measure(t.Context(), Options{Folder: dir, Bytes: 8 << 20, Depths: []int{1, 4},
		Each: 20 * time.Millisecond, Log: func(s string) { log = append(log, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if len(log) != 3 || found.Size <= 0 || found.Write <= 0 || len(found.Depths) != 2 {
		t.Fatalf("%q, %+v", log, found)
	}
	for _, d := range found.Depths {
		if d.Reads <= 0 || d.Rate < d.Reads*page/1e3 {
			t.Errorf("%+v: reads of 1 MiB bring a thousandth of what those of 4 KiB do", d)
		}
	}
	d := found.Describe("here", "2026-11-25")
	path := filepath.Join(t.TempDir(), "here.toml")
	if err := builtin.Write(map[string]any{path: d}); err != nil {
		t.Fatal(err)
	}
	loaded, err := hw.LoadDrive(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(loaded, d) || loaded.Read.Value < loaded.Depths[0].Rate.Value ||
		loaded.Reads.Value < loaded.Depths[0].Reads.Value {
		t.Errorf("%+v is not %+v", loaded, d)
	}
}

// A page that is not where it says it belongs ends the measurement.
func TestWrongPagesAreFound(t *testing.T) {
	b := make([]byte, chunk)
	stamp(b, 3*chunk, rand.NewChaCha8([32]byte{1}))
	if err := verify(b, 3*chunk); err != nil {
		t.Fatal(err)
	}
	if err := verify(b, 2*chunk); err == nil {
		t.Error("another place's chunk passes")
	}
	binary.LittleEndian.PutUint64(b[5*page:], 7)
	if err := verify(b, 3*chunk); err == nil || !strings.Contains(err.Error(), "is that of 7") {
		t.Errorf("%v", err)
	}
}

func TestDriveErrors(t *testing.T) {
	dir := direct(t)
	o := Options{Folder: dir, Bytes: 1 << 20, Depths: []int{1}, Each: time.Hour}
	for want, change := range map[string]func(*Options){
		"no such file":          func(o *Options) { o.Folder = filepath.Join(dir, "none") },
		"want whole chunks of":  func(o *Options) { o.Bytes = 5000 },
		"0 bytes: want whole c": func(o *Options) { o.Bytes = 0 },
	} {
		o := o
		change(&o)
		if _, err := Measure(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), o.Folder) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Log = func(string) {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v has a name while it is measured: it would stay if the process were killed", left)
		}
		cancel()
	}
	if _, err := Measure(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the interruption", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
