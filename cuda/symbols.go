package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// symbol is an address in the library and the name to report it by.
type symbol struct {
	name    string
	address uintptr
}

// symbols holds every function of sparseserve.h that is called with integers and pointers only.
type symbols struct {
	version, init, device, deviceSync                          symbol
	deviceAlloc, deviceFree, hostAlloc, hostFree               symbol
	streamCreate, streamDestroy, streamSync, streamWait        symbol
	eventCreate, eventDestroy, eventRecord, eventSync, eventMs symbol
	saverCreate, saverDestroy, saveStart, saveWait             symbol
	linearOpen, decodeWorkspace, psaState, lookupState         symbol
	miKernel, miEstimateWorkspace, miTopKWorkspace             symbol
	bench, benchOverlapped                                     symbol
	operations                                                 [len(functions)]symbol
}

func (s *symbols) table() map[string]*symbol {
	table := map[string]*symbol{
		"ss_version": &s.version, "ss_init": &s.init, "ss_device": &s.device,
		"ss_device_sync": &s.deviceSync, "ss_device_alloc": &s.deviceAlloc,
		"ss_device_free": &s.deviceFree, "ss_host_alloc": &s.hostAlloc, "ss_host_free": &s.hostFree,
		"ss_stream_create": &s.streamCreate, "ss_stream_destroy": &s.streamDestroy,
		"ss_stream_sync": &s.streamSync, "ss_stream_wait": &s.streamWait,
		"ss_event_create": &s.eventCreate, "ss_event_destroy": &s.eventDestroy,
		"ss_event_record": &s.eventRecord,
		"ss_event_sync":   &s.eventSync, "ss_event_ms": &s.eventMs,
		"ss_saver_create": &s.saverCreate, "ss_saver_destroy": &s.saverDestroy,
		"ss_save_start": &s.saveStart, "ss_save_wait": &s.saveWait,
		"ss_linear_open": &s.linearOpen, "ss_decode_workspace": &s.decodeWorkspace,
		"ss_psa_state": &s.psaState, "ss_lookup_state": &s.lookupState,
		"ss_mi_kernel": &s.miKernel, "ss_mi_estimate_workspace": &s.miEstimateWorkspace,
		"ss_mi_topk_workspace": &s.miTopKWorkspace,
		"ss_bench":             &s.bench, "ss_bench_overlapped": &s.benchOverlapped,
	}
	for i, name := range functions {
		table[name] = &s.operations[i]
	}
	return table
}

// bind looks up every symbol before any call, so that an incompatible library is rejected as a
// whole.
func bind(handle uintptr, path string) (*Session, error) {
	s := &Session{}
	for name, to := range s.symbols.table() {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has no %s; rebuild it with 'make cuda'", ErrNoSymbol,
				path, name)
		}
		*to = symbol{name, address}
	}
	text, err := purego.Dlsym(handle, "ss_last_error")
	if err != nil {
		return nil, fmt.Errorf("%w: %s has no ss_last_error; rebuild it with 'make cuda'",
			ErrNoSymbol, path)
	}
	purego.RegisterFunc(&s.lastError, text)
	if got, _, _ := purego.SyscallN(s.symbols.version.address); int32(got) != Version {
		return nil, fmt.Errorf(
			"%w: %s has version %d, this program needs %d; rebuild it with 'make cuda'",
			ErrVersion, path, int32(got), Version)
	}
	return s, nil
}
