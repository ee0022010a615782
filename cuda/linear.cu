// Linears through cuBLAS, opened at run time: the library works without it until a linear is asked
// for.
//
//   y [tokens][out] = x [tokens][in] w^T, w [out][in], fp16, accumulated in fp32
//
// cuBLAS is column-major: it computes y^T = w x^T with w read as its transpose. Only the C symbols
// below are used, whose ABI has not changed between CUDA 11 and 13.
#include <dlfcn.h>

#include "common.cuh"

namespace ss {

using Create = int (*)(void **);
using SetStream = int (*)(void *, cudaStream_t);
using Gemm = int (*)(void *, int, int, int, int, int, const void *, const void *, int, int,
                     const void *, int, int, const void *, void *, int, int, int, int);

struct Cublas {
  void *library = nullptr;
  Create create = nullptr;
  SetStream set_stream = nullptr;
  Gemm gemm = nullptr;
};
static Cublas cublas;

constexpr int kNoTranspose = 0, kTranspose = 1, kHalf = 2 /* CUDA_R_16F */, kCompute32F = 68,
              kDefaultAlgorithm = -1;

static int open_cublas(const char *path) {
  const char *names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so",
                         "/usr/local/cuda/lib64/libcublas.so"};
  void *library = nullptr;
  if (path != nullptr && path[0] != 0) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail(SS_ERR_LIBRARY, "cuBLAS: %s", dlerror());
  }
  for (const char *name : names)
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(
        SS_ERR_LIBRARY,
        "cuBLAS is not to be found (libcublas.so.13, .12 or .11): install it or give its path");
  Cublas found;
  found.library = library;
  found.create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
  found.set_stream = reinterpret_cast<SetStream>(dlsym(library, "cublasSetStream_v2"));
  found.gemm = reinterpret_cast<Gemm>(dlsym(library, "cublasGemmEx"));
  if (found.create == nullptr || found.set_stream == nullptr || found.gemm == nullptr) {
    dlclose(library);
    return fail(SS_ERR_LIBRARY, "cuBLAS lacks cublasCreate_v2, cublasSetStream_v2 or cublasGemmEx");
  }
  cublas = found;
  return SS_OK;
}

static int cublas_check(int status, const char *what) {
  return status == 0 ? SS_OK : fail(SS_ERR_CUDA, "%s: cuBLAS status %d", what, status);
}

}  // namespace ss

extern "C" int ss_linear_open(const char *path) {
  return ss::cublas.library != nullptr ? SS_OK : ss::open_cublas(path);
}

extern "C" int ss_linear(const ss_linear_args *args, ss_stream stream) {
  static thread_local void *handle = nullptr;  // a handle serves one thread
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->in > 0 && args->out > 0);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->w != nullptr && args->y != nullptr);
  SS_TRY(ss_linear_open(nullptr));
  if (handle == nullptr) SS_TRY(ss::cublas_check(ss::cublas.create(&handle), "cublasCreate"));
  SS_TRY(ss::cublas_check(ss::cublas.set_stream(handle, ss::stream_of(stream)), "cublasSetStream"));
  const float one = 1, zero = 0;
  return ss::cublas_check(
      ss::cublas.gemm(handle, ss::kTranspose, ss::kNoTranspose, args->out, args->tokens, args->in,
                      &one, args->w, ss::kHalf, args->in, args->x, ss::kHalf, args->in, &zero,
                      args->y, ss::kHalf, args->out, ss::kCompute32F, ss::kDefaultAlgorithm),
      "cublasGemmEx");
}
