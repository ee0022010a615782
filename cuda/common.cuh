// Errors, argument checks and small device helpers that every file shares.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <atomic>

#include "sparseserve.h"

namespace ss {

// Stores the text for ss_last_error() and returns code.
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The code of a CUDA result; the text names the expression that failed.
int check(cudaError_t result, const char *what);

// Limits of the selected GPU, read once per process and GPU.
struct Limits {
  int sm_count;
  int shared_bytes;  // a CTA, opted in
  int shared_sm_bytes;
  int capability;
  size_t l2_bytes;
};
int limits(Limits *out);

// Lets a kernel use up to `bytes` of dynamic shared memory. The driver is asked once per kernel and
// GPU: a launch would otherwise pay for it.
template <auto kKernel>
int allow_shared(int bytes) {
  constexpr int kDevices = 64;
  static std::atomic<int> allowed[kDevices];  // zeroed
  int device = 0;
  int code = check(cudaGetDevice(&device), "cudaGetDevice");
  if (code != SS_OK) return code;
  if (device < kDevices && allowed[device].load() >= bytes) return SS_OK;
  code = check(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "cudaFuncSetAttribute");
  if (code == SS_OK && device < kDevices) allowed[device].store(bytes);
  return code;
}

// A stream that does not wait for the default stream. drop_stream waits for its work and ignores
// errors. High: its CTAs are scheduled before other streams' CTAs.
int take_stream(cudaStream_t *out, bool high);
void drop_stream(cudaStream_t stream);

// Runs operations in sequence on the stream.
int run_calls(const ss_call *calls, int n, cudaStream_t stream);

inline cudaStream_t stream_of(ss_stream s) { return static_cast<cudaStream_t>(s); }

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
inline int64_t ceil_div64(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace ss

#define SS_TRY(expr)                        \
  do {                                      \
    const int ss_code_ = (expr);            \
    if (ss_code_ != SS_OK) return ss_code_; \
  } while (0)

#define SS_CUDA(expr) SS_TRY(ss::check((expr), #expr))

// A bad argument is the caller's error: the text has the condition that did not hold.
#define SS_NEED(cond)                                                                        \
  do {                                                                                       \
    if (!(cond)) return ss::fail(SS_ERR_ARGUMENT, "%s: argument needs %s", __func__, #cond); \
  } while (0)
