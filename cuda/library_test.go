package cuda

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

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
	args := append([]string{"-shared", "-fPIC", "-Wall", "-Werror", "-o", path, "testdata/fake.c",
		"-lpthread"}, defines...)
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

// A library below the working folder is opened in a checkout alone: elsewhere it is anybody's.
func TestOpenInACheckout(t *testing.T) {
	t.Setenv(LibraryEnv, "")
	t.Chdir(t.TempDir())
	built := filepath.Join("cuda", "build", libraryName)
	if err := errors.Join(os.MkdirAll(filepath.Dir(built), 0o755),
		os.WriteFile(built, []byte("not a library"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ module, want string }{
		{"", "the working folder is no checkout of sparseserve"},
		{"module example.org/other\n", "the working folder is no checkout of sparseserve"},
		{"module github.com/sparseserve/sparseserve\n\ngo 1.26\n", "does not load"},
	} {
		if c.module != "" {
			if err := os.WriteFile("go.mod", []byte(c.module), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.module, err, c.want)
		}
	}
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
	below := filepath.Join(folder, "cuda", "build", libraryName)
	named := filepath.Join(folder, "named.so")
	for _, path := range []string{below, named} {
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"),
		[]byte("module github.com/sparseserve/sparseserve\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	for _, c := range []struct{ path, env, want string }{{"", "", below}, {"", named, named},
		{below, named, below}} {
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
	for code, define := range map[Code]string{NoDriver: "-DFAKE_CODE=3", NoDevice: "-DFAKE_CODE=4",
		Failed: "-DFAKE_CODE=2", Code(77): "-DFAKE_CODE=77"} {
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
			errs <- lib.Do(func(s *Session) error { return s.Launch(&EmptyArgs{}, 0) })
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
		try(s.Launch(&MemsetArgs{Dst: host.Ptr(), Bytes: 64, Value: 7}, 0))
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
		event, err := s.EventCreate(true)
		try(err)
		untimed, err := s.EventCreate(false)
		try(err)
		if untimed == event {
			t.Error("an event that keeps no time is one that does")
		}
		try(s.EventRecord(event, stream))
		try(s.StreamWait(stream, event))
		try(s.EventSync(event))
		try(s.StreamSync(stream))
		try(s.DeviceSync())
		ms, err := s.EventMilliseconds(event, event)
		try(err)
		if ms != 2.5 {
			t.Errorf("%g ms", ms)
		}
		try(s.EventDestroy(event))
		try(s.StreamDestroy(stream))
		saver, err := s.SaverCreate(3, 1<<20, 2)
		try(err)
		try(s.SaverDestroy(saver))
		try(s.LinearOpen(""))
		try(s.HostFree(host))
		try(s.DeviceFree(device))
		if err := s.LinearOpen("/nowhere"); !errors.Is(err, NoCuBLAS) {
			t.Errorf("cuBLAS of /nowhere: %v", err)
		}
		return errors.Join(all...)
	})
	if err != nil {
		t.Error(err)
	}
}

// Without a driver the real library must still load and report what is missing. It is built only
// where the toolkit is: .ci/cuda runs this then.
func TestRealLibraryWithoutGPU(t *testing.T) {
	path := cmp.Or(os.Getenv(LibraryEnv), filepath.Join("build", libraryName))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: 'make cuda' builds it", path)
	}
	lib, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	err = lib.Do(func(s *Session) error { return s.Init(0) })
	if err != nil && !errors.Is(err, NoDriver) && !errors.Is(err, NoDevice) &&
		!errors.Is(err, Unsupported) {
		t.Errorf("neither a GPU nor a clear reason: %v", err)
	}
}
