// Error codes and their text. One message a thread, so that a failure on a helper thread never
// overwrites the caller's.
#include <cstdarg>
#include <cstdio>

#include "common.cuh"

namespace ss {

static thread_local char message[1024];

int fail(int code, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  return code;
}

int check(cudaError_t result, const char *what) {
  if (result == cudaSuccess) return SS_OK;
  cudaGetLastError();  // clear a non-sticky error: the next call must not inherit it
  int code = SS_ERR_CUDA;
  if (result == cudaErrorMemoryAllocation) code = SS_ERR_MEMORY;
  if (result == cudaErrorNoDevice || result == cudaErrorInvalidDevice) code = SS_ERR_NO_DEVICE;
  if (result == cudaErrorInsufficientDriver) code = SS_ERR_NO_DRIVER;
  return fail(code, "%s: %s (%s)", what, cudaGetErrorString(result), cudaGetErrorName(result));
}

}  // namespace ss

extern "C" int ss_version(void) { return SS_VERSION; }
extern "C" const char *ss_last_error(void) { return ss::message; }
