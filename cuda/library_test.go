package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// fake builds testdata/fake.c with the given defines.
func fake(t *testing.T, defines ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no gcc: these tests must run in CI")
		}
		t.Skip("no gcc to build the fake library")
	}
	path := filepath.Join(t.TempDir(), libraryName)
	args := append([]string{"-shared", "-fPIC", "-Wall", "-Werror", "-o", path, "testdata/fake.c", "-lpthread"}, defines...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return path
}

func open(t *testing.T, defines ...string) *Library {
	t.Helper()
	lib, err := Open(fake(t, defines...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lib.Close)
	return lib
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	t.Setenv(LibraryEnv, "")
	t.Chdir(t.TempDir()) // no cuda/build below
	nowhere := filepath.Join(t.TempDir(), "none.so")
	broken := filepath.Join(t.TempDir(), "broken.so")
	if err := os.WriteFile(broken, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, env string
		want            error
		text            string
	}{
		{"nothing anywhere", "", "", ErrNoLibrary, "make cuda"},
		{"given path missing", nowhere, "", ErrNoLibrary, nowhere},
		{"environment's path missing", "", nowhere, ErrNoLibrary, LibraryEnv},
		{"not a library", broken, "", ErrNoLibrary, "does not load"},
	} {
		t.Setenv(LibraryEnv, c.env)
		_, err := Open(c.path)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOpenRefusesALibraryThatDoesNotFit(t *testing.T) {
	_, err := Open(fake(t, "-DFAKE_VERSION=999"))
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "999") {
		t.Errorf("version 999: %v", err)
	}
	_, err = Open(fake(t, "-DFAKE_WITHOUT_PSA"))
	if !errors.Is(err, ErrNoSymbol) || !strings.Contains(err.Error(), "ss_psa;") {
		t.Errorf("without ss_psa: %v", err)
	}
}

func TestOpenLooksInTheRightOrder(t *testing.T) {
	folder := t.TempDir()
	build := filepath.Join(folder, "cuda", "build")
	if err := os.MkdirAll(build, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(fake(t))
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join("cuda", "build", libraryName)
	named := filepath.Join(folder, "named.so")
	for _, path := range []string{filepath.Join(folder, below), named} {
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	for _, c := range []struct{ path, env, want string }{{"", "", below}, {"", named, named}, {below, named, below}} {
		t.Setenv(LibraryEnv, c.env)
		lib, err := Open(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if lib.Path != c.want {
			t.Errorf("path %q, environment %q: opened %s, want %s", c.path, c.env, lib.Path, c.want)
		}
		lib.Close()
	}
}

func TestCodesBecomeErrors(t *testing.T) {
	for code, define := range map[Code]string{NoDriver: "-DFAKE_CODE=3", NoDevice: "-DFAKE_CODE=4", Failed: "-DFAKE_CODE=2", Code(77): "-DFAKE_CODE=77"} {
		err := open(t, define).Do(func(s *Session) error { return s.Init(5) })
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, code) || errors.Is(err, OutOfMemory) {
			t.Fatalf("code %d: %v", code, err)
		}
		if want := "ss_init: " + code.Error() + ": fake failure of GPU 5"; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestAllCallsComeFromOneThread(t *testing.T) {
	lib := open(t)
	var wait sync.WaitGroup
	errs := make(chan error, 64)
	for range 64 {
		wait.Go(func() {
			runtime.LockOSThread() // a thread of its own for each caller
			errs <- lib.Do(func(s *Session) error { return s.Empty(0) })
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestClosedLibrarySaysSo(t *testing.T) {
	lib := open(t)
	lib.Close()
	lib.Close()
	if err := lib.Do(func(*Session) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func symbolAt(t *testing.T, lib *Library, name string) uintptr {
	t.Helper()
	handle, err := purego.Dlopen(lib.Path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// The Go structs must lie in memory as the header's do: every field of every one.
func TestStructsMatchTheHeader(t *testing.T) {
	var layout func() *int32
	purego.RegisterFunc(&layout, symbolAt(t, open(t), "fake_layout"))
	values := unsafe.Slice(layout(), 1000)
	for _, v := range []any{MemcpyArgs{}, MemsetArgs{}, FillArgs{}, BlocksArgs{}, LookupArgs{}, TableArgs{}, SaveArgs{}, DecodeArgs{}, PSAArgs{}, PSAPipelineArgs{}, PrefillArgs{}, DigestArgs{}, ScoresArgs{},
		TopKArgs{}, SelectArgs{}, LinearArgs{}, EmbedArgs{}, RMSNormArgs{}, RopeArgs{}, SiluMulArgs{}, ArgmaxArgs{}, deviceInfoC{}, benchC{}, callC{}} {
		typ := reflect.TypeOf(v)
		got := []int32{int32(typ.Size())}
		for i := range typ.NumField() {
			got = append(got, int32(typ.Field(i).Offset))
		}
		end := slices.Index(values, -1)
		if !slices.Equal(got, values[:end]) {
			t.Errorf("%s: size and offsets %v, the header's are %v", typ.Name(), got, values[:end])
		}
		values = values[end+1:]
	}
	if values[0] != -2 {
		t.Error("the header has more structs than were compared")
	}
}

func TestOperationsMatchTheHeader(t *testing.T) {
	var operations func() *int32
	purego.RegisterFunc(&operations, symbolAt(t, open(t), "fake_operations"))
	all := []Operation{&EmptyArgs{}, &MemcpyArgs{}, &MemsetArgs{}, &FillArgs{}, &FlashH2DArgs{}, &GPUScatterArgs{}, &MemcpyBlocksArgs{}, &MemcpyBatchArgs{}, &SaveArgs{}, &DecodeArgs{},
		&PSAArgs{}, &PSAPipelineArgs{}, &PrefillArgs{}, &DigestArgs{}, &ScoresArgs{}, &TopKArgs{}, &SelectArgs{}, &LinearArgs{}, &EmbedArgs{}, &RMSNormArgs{}, &RopeArgs{}, &SiluMulArgs{}, &ArgmaxArgs{}, &CarryArgs{}, &LookupArgs{}, &TableArgs{}, &KVWriteArgs{}}
	want := unsafe.Slice(operations(), len(all)+1)
	for i, o := range all {
		if op, _ := o.operation(); op != want[i] {
			t.Errorf("%T is operation %d, the header's is %d", o, op, want[i])
		}
	}
	if int(want[len(all)]) != len(all) {
		t.Errorf("the header has %d operations, the binding %d", want[len(all)], len(all))
	}
}

func TestMemoryStreamsAndEvents(t *testing.T) {
	err := open(t).Do(func(s *Session) error {
		info, err := s.Device()
		if want := (DeviceInfo{"Fake GPU", 11, 12, 13, 14, 15, 16, 17, 18, 19}); info != want {
			t.Errorf("device %+v", info)
		}
		var all []error
		try := func(err error) { all = append(all, err) }
		try(err)
		device, err := s.DeviceAlloc(64)
		try(err)
		host, err := s.HostAlloc(64, HugePages)
		try(err)
		try(s.Memset(&MemsetArgs{Dst: host.Ptr(), Bytes: 64, Value: 7}, 0))
		if b := host.Bytes(); len(b) != 64 || b[0] != 7 || b[63] != 7 || len(Slice[int32](host)) != 16 {
			t.Errorf("host memory %v", b)
		}
		data := []int32{3, 1, 4, 1, 5}
		try(Upload(s, device, data))
		back := make([]int32, 5)
		try(Download(s, back, device))
		if !slices.Equal(back, data) {
			t.Errorf("%v came back as %v", data, back)
		}
		stream, err := s.StreamCreate(false)
		try(err)
		event, err := s.EventCreate()
		try(err)
		try(s.EventRecord(event, stream))
		try(s.StreamWait(stream, event))
		try(s.EventSync(event))
		try(s.StreamSync(stream))
		try(s.DeviceSync())
		done, err := s.EventDone(event)
		try(err)
		ms, err := s.EventMilliseconds(event, event)
		try(err)
		if !done || ms != 2.5 {
			t.Errorf("done %t, %g ms", done, ms)
		}
		try(s.EventDestroy(event))
		try(s.StreamDestroy(stream))
		saver, err := s.SaverCreate(3, 1<<20, 2)
		try(err)
		try(s.SaveStart(&SaveArgs{Saver: saver}))
		try(s.SaveWait(saver))
		try(s.SaverDestroy(saver))
		try(s.LinearOpen(""))
		try(s.HostFree(host))
		try(s.DeviceFree(device))
		if err := s.LinearOpen("/nowhere"); !errors.Is(err, NoCuBLAS) {
			t.Errorf("cuBLAS of /nowhere: %v", err)
		}
		if err := s.MemcpyBatch(&BlocksArgs{}, 0); !errors.Is(err, Unsupported) || !strings.Contains(err.Error(), "not in this toolkit") {
			t.Errorf("batched memcpy: %v", err)
		}
		return errors.Join(all...)
	})
	if err != nil {
		t.Error(err)
	}
}

// Every operation's arguments and stream must arrive as they were given.
func TestArgumentsArrive(t *testing.T) {
	lib := open(t)
	var seen func(bytes *uint64, stream *uintptr) *byte
	purego.RegisterFunc(&seen, symbolAt(t, lib, "fake_seen"))
	check := func(what string, err error, args unsafe.Pointer, size uintptr) {
		t.Helper()
		var bytes uint64
		var stream uintptr
		got := unsafe.Slice(seen(&bytes, &stream), size)
		if err != nil || uintptr(bytes) != size || !slices.Equal(got, unsafe.Slice((*byte)(args), size)) {
			t.Errorf("%s: %v; %d of %d bytes", what, err, bytes, size)
		}
		if stream != 42 && what != "FlashD2H" {
			t.Errorf("%s: stream %d", what, stream)
		}
	}
	err := lib.Do(func(s *Session) error {
		up := MemcpyArgs{1, 17, 3}
		check("Carry", s.Carry(&up, 42), unsafe.Pointer(&up), unsafe.Sizeof(up))
		fillArgs := FillArgs{1, 2, 3, 4}
		check("Fill", s.Fill(&fillArgs, 42), unsafe.Pointer(&fillArgs), unsafe.Sizeof(fillArgs))
		blocks := BlocksArgs{1, 2, 3, 4, 5, 6, 7, 8}
		for name, f := range map[string]func(*BlocksArgs, Stream) error{"FlashH2D": s.FlashH2D, "GPUScatter": s.GPUScatter, "MemcpyBlocks": s.MemcpyBlocks} {
			blocks.Count++
			check(name, f(&blocks, 42), unsafe.Pointer(&blocks), unsafe.Sizeof(blocks))
		}
		lookup := LookupArgs{Table: 1, Pool: 2, BlockBytes: 3, Batch: 4, Micro: 5}
		check("Lookup", s.Lookup(&lookup, 42), unsafe.Pointer(&lookup), unsafe.Sizeof(lookup))
		table := TableArgs{1, 2, 3, 4, 5}
		check("Table", s.Table(&table, 42), unsafe.Pointer(&table), unsafe.Sizeof(table))
		save := SaveArgs{300, 2, 3, 4, 5, 6}
		check("FlashD2H", s.FlashD2H(&save), unsafe.Pointer(&save), unsafe.Sizeof(save))
		decode := DecodeArgs{Q: 1, Workspace: 9, Batch: 10, Scale: 0.5}
		check("Decode", s.Decode(&decode, 42), unsafe.Pointer(&decode), unsafe.Sizeof(decode))
		psa := PSAArgs{Q: 1, Batch: 3, Epsilon: 0.9}
		check("PSA", s.PSA(&psa, 42), unsafe.Pointer(&psa), unsafe.Sizeof(psa))
		pipeline := PSAPipelineArgs{PSA: &psa, Src: 3, Depth: 2}
		check("PSAPipeline", s.PSAPipeline(&pipeline, 42), unsafe.Pointer(&pipeline), unsafe.Sizeof(pipeline))
		prefill := PrefillArgs{Q: 1, OutHeadStride: 8, Scale: 2, Table: 3, BlockTokens: 4}
		check("Prefill", s.Prefill(&prefill, 42), unsafe.Pointer(&prefill), unsafe.Sizeof(prefill))
		digest := DigestArgs{1, 2, 3, 4, 5, 6, 7}
		check("Digest", s.Digest(&digest, 42), unsafe.Pointer(&digest), unsafe.Sizeof(digest))
		scores := ScoresArgs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		check("Scores", s.Scores(&scores, 42), unsafe.Pointer(&scores), unsafe.Sizeof(scores))
		top := TopKArgs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		check("TopK", s.TopK(&top, 42), unsafe.Pointer(&top), unsafe.Sizeof(top))
		both := SelectArgs{scores, top, 12}
		check("Select", s.Select(&both, 42), unsafe.Pointer(&both), unsafe.Sizeof(both))
		linear := LinearArgs{1, 2, 3, 4, 5, 6}
		check("Linear", s.Linear(&linear, 42), unsafe.Pointer(&linear), unsafe.Sizeof(linear))
		embed := EmbedArgs{1, 2, 3, 4, 5}
		check("Embed", s.Embed(&embed, 42), unsafe.Pointer(&embed), unsafe.Sizeof(embed))
		norm := RMSNormArgs{1, 2, 3, 4, 5, 6, 7, 8}
		check("RMSNorm", s.RMSNorm(&norm, 42), unsafe.Pointer(&norm), unsafe.Sizeof(norm))
		rope := RopeArgs{QKV: 1, First: 8, HeadStride: 10, BlockTokens: 15}
		check("Rope", s.Rope(&rope, 42), unsafe.Pointer(&rope), unsafe.Sizeof(rope))
		check("KVWrite", s.KVWrite(&rope, 42), unsafe.Pointer(&rope), unsafe.Sizeof(rope))
		silu := SiluMulArgs{1, 2, 3, 4}
		check("SiluMul", s.SiluMul(&silu, 42), unsafe.Pointer(&silu), unsafe.Sizeof(silu))
		argmax := ArgmaxArgs{1, 2, 3, 4, 5}
		check("Argmax", s.Argmax(&argmax, 42), unsafe.Pointer(&argmax), unsafe.Sizeof(argmax))

		if n, err := s.DecodeWorkspace(&decode); n != 10000 || err != nil {
			t.Errorf("workspace of %d bytes, %v", n, err)
		}
		if n, err := s.LookupState(&lookup); n != 12000 || err != nil {
			t.Errorf("%d bytes of lookup state, %v", n, err)
		}
		if n, err := s.PSAState(&psa); n != 6000 || err != nil {
			t.Errorf("state of %d bytes, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBenchSamplesArrive(t *testing.T) {
	err := open(t).Do(func(s *Session) error {
		samples, err := s.Bench(Bench{Calls: []Operation{&EmptyArgs{}, &PrefillArgs{}}, Repeats: 3, Clock: WallClock, FlushL2: true})
		if want := []float64{12000.75, 12001.75, 12002.75}; err != nil || !slices.Equal(samples, want) {
			t.Errorf("%v, %v; want %v", samples, err, want)
		}
		samples, ms, runs, err := s.BenchBeside(Bench{Calls: []Operation{&DecodeArgs{}}, Repeats: 1}, &EmptyArgs{}, &LinearArgs{})
		if err != nil || samples[0] != 9000 || ms != 17 || runs != 2 {
			t.Errorf("beside: %v, %g ms, %d runs, %v", samples, ms, runs, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Without a driver the real library must still load and say what is missing. It is built only where the toolkit is.
func TestRealLibraryWithoutGPU(t *testing.T) {
	path := filepath.Join("build", libraryName)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no cuda/build/libsparseserve.so: 'make cuda' builds it")
	}
	lib, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	err = lib.Do(func(s *Session) error { return s.Init(0) })
	if err != nil && !errors.Is(err, NoDriver) && !errors.Is(err, NoDevice) && !errors.Is(err, Unsupported) {
		t.Errorf("neither a GPU nor a clear reason: %v", err)
	}
}
