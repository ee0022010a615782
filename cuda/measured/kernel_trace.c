// Every kernel and copy of a process with the time at which it ran, by CUPTI: a library that the
// driver loads into it. What runs one after another on a stream shows how far kernels are apart,
// which times of kernels by themselves do not.
//
//   gcc -O2 -shared -fPIC -I/usr/local/cuda/include -o out/trace.so cuda/measured/kernel_trace.c
//     -L/usr/local/cuda/lib64 -lcupti -lpthread
//   KERNEL_TRACE=out/run CUDA_INJECTION64_PATH=$PWD/out/trace.so
//     sparseserve validate live CONFIG --split-every 0
//   python3 cuda/measured/kernel_gaps.py out/run
//
// Writes out/run.bin, records as below in no order, and out/run.names, an index and a name a line.
// The last fifth of a second of a process that does not return from main is missing.
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUDA_VERSION >= 13000
typedef CUpti_ActivityKernel10 kernel;
typedef CUpti_ActivityMemcpy6 copy;
#else // of CUDA 11.8; others between have other structures
typedef CUpti_ActivityKernel8 kernel;
typedef CUpti_ActivityMemcpy5 copy;
#endif

struct record {
  uint64_t start;        // ns
  uint32_t ns;           // that it ran
  uint16_t name, stream; // name: its index
  uint32_t grid, unused; // grid: thread blocks, or bytes of a copy
};

static FILE *records, *names;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static uint16_t index_of(const char *name) {
  static char *known[1024];
  static int n;
  for (int i = 0; i < n; i++)
    if (!strcmp(known[i], name)) return i;
  if (n == 1024) return n - 1;
  if (n == 1023) name = "others";
  fprintf(names, "%d\t%s\n", n, name);
  fflush(names);
  known[n] = strdup(name);
  return n++;
}

static void CUPTIAPI wanted(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 8 << 20;
  *buffer = aligned_alloc(64, *size);
  *most = 0;
}

static void CUPTIAPI filled(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t valid) {
  pthread_mutex_lock(&one);
  for (CUpti_Activity *a = NULL;
       cuptiActivityGetNextRecord(buffer, valid, &a) == CUPTI_SUCCESS;) {
    struct record r = {0};
    if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      kernel *k = (kernel *)a;
      r.start = k->start, r.ns = k->end - k->start, r.stream = k->streamId;
      r.name = index_of(k->name), r.grid = k->gridX * k->gridY * k->gridZ;
    } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      copy *c = (copy *)a;
      r.start = c->start, r.ns = c->end - c->start, r.stream = c->streamId;
      r.name = index_of("memcpy"), r.grid = c->bytes;
    } else {
      continue;
    }
    fwrite(&r, sizeof r, 1, records);
  }
  fflush(records);
  pthread_mutex_unlock(&one);
  free(buffer);
}

// InitializeInjection is what the driver calls; 0: no success.
int InitializeInjection(void) {
  const char *to = getenv("KERNEL_TRACE");
  char path[4096];
  if (!to) return 0;
  snprintf(path, sizeof path, "%s.bin", to);
  records = fopen(path, "wb");
  snprintf(path, sizeof path, "%s.names", to);
  names = fopen(path, "w");
  return records && names && !cuptiActivityRegisterCallbacks(wanted, filled) &&
         !cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) &&
         !cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) && !cuptiActivityFlushPeriod(200);
}
