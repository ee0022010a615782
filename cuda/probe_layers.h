// Prefill with overlapped KV saves (SparseServe Fig. 14b): a probe of calibration, apart from the
// interface in sparseserve.h.
#ifndef SPARSESERVE_PROBE_LAYERS_H
#define SPARSESERVE_PROBE_LAYERS_H

#include "sparseserve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const ss_call *compute;  // one layer's: SS_OP_LINEAR, _PREFILL, _EMPTY, _MEMCPY, _CARRY
  const ss_call *save;     // of one or more layers: SS_OP_GPU_SCATTER, _MEMCPY_BLOCKS, _FLASH_D2H
  int32_t n_compute, n_save;
  int32_t layers;
  int32_t warmup, repeats;
  int32_t buffered;  // layers launched and not saved yet, at most; 0: any number
  int32_t each;      // calls of save that save one layer, used round robin; 0: all
  float *samples;  // host [repeats], milliseconds
} ss_layers_args;

// Computes the layers in sequence on one stream; a second host thread saves each on a stream of its
// own as soon as it is computed. A sample is the host time until the last layer is computed and
// saved. Without a limit to the layers buffered all are launched at once, before the first is
// saved; with one, calls of both threads overlap, as in the serving loop.
SS_API int ss_bench_prefill(const ss_layers_args *args);

#ifdef __cplusplus
}
#endif
#endif
