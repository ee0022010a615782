package cuda

import (
	"fmt"
	"slices"

	"github.com/ebitengine/purego"
)

// helpers are the functions of sparseserve.h that are no operations.
var helpers = []string{
	"ss_version", "ss_last_error", "ss_init", "ss_device", "ss_device_sync", "ss_device_alloc",
	"ss_device_free", "ss_host_alloc", "ss_host_free", "ss_stream_create", "ss_stream_destroy",
	"ss_stream_sync", "ss_stream_wait", "ss_event_create", "ss_event_destroy", "ss_event_record",
	"ss_event_sync", "ss_event_ms", "ss_saver_create", "ss_saver_destroy",
	"ss_linear_open", "ss_decode_workspace", "ss_psa_state", "ss_lookup_state",
	"ss_mi_kernel", "ss_mi_estimate_workspace", "ss_mi_topk_workspace", "ss_bench",
	"ss_bench_overlapped",
}

// bind looks up every function before any call, so that an incompatible library is rejected as a
// whole.
func bind(handle uintptr, path string) (*Session, error) {
	s := &Session{symbols: map[string]uintptr{}}
	for _, name := range slices.Concat(helpers, functions[:]) {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has no %s; rebuild it with 'make cuda'", ErrNoSymbol,
				path, name)
		}
		s.symbols[name] = address
	}
	purego.RegisterFunc(&s.lastError, s.symbols["ss_last_error"])
	if got, _, _ := purego.SyscallN(s.symbols["ss_version"]); int32(got) != Version {
		return nil, fmt.Errorf(
			"%w: %s has version %d, this program needs %d; rebuild it with 'make cuda'",
			ErrVersion, path, int32(got), Version)
	}
	return s, nil
}
