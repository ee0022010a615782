// SwiGLU's activation (equation and shapes: sparseserve.h, ss_silu_mul_args), 16 bytes a thread and
// access.
#include "common.cuh"
#include "half8.cuh"

namespace ss {

constexpr int kSiluThreads = 128;
constexpr int kSiluPieces = 2;  // of 8 values, a thread

static __global__ void __launch_bounds__(kSiluThreads)
    silu_mul_kernel(ss_silu_mul_args a, int chunks) {
  const int token = blockIdx.x / chunks, pieces = a.ffn / 8;
  const int first = (blockIdx.x % chunks) * kSiluThreads * kSiluPieces + threadIdx.x;
  const uint4 *gate = static_cast<const uint4 *>(a.x) + int64_t(token) * 2 * pieces,
              *up = gate + pieces;
  uint4 *out = static_cast<uint4 *>(a.out) + int64_t(token) * pieces;
  uint4 g[kSiluPieces], u[kSiluPieces];
#pragma unroll
  for (int p = 0; p < kSiluPieces; p++) {
    const int i = first + p * kSiluThreads;
    if (i < pieces) g[p] = gate[i], u[p] = up[i];
  }
#pragma unroll
  for (int p = 0; p < kSiluPieces; p++) {
    const int i = first + p * kSiluThreads;
    if (i >= pieces) break;
    float x[8], y[8];
    unpack8(g[p], x);
    unpack8(u[p], y);
#pragma unroll
    for (int j = 0; j < 8; j++) x[j] = rounded(__fdividef(x[j], 1 + __expf(-x[j]))) * y[j];
    out[i] = pack8(x);
  }
}

}  // namespace ss

extern "C" int ss_silu_mul(const ss_silu_mul_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->ffn > 0 && args->ffn % 8 == 0);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->out != nullptr);
  const int chunks = ss::ceil_div(args->ffn / 8, ss::kSiluThreads * ss::kSiluPieces);
  SS_NEED(int64_t(args->tokens) * chunks < int64_t(1) << 31);
  ss::silu_mul_kernel<<<unsigned(args->tokens * chunks), ss::kSiluThreads, 0,
                        ss::stream_of(stream)>>>(*args, chunks);
  return ss::check(cudaGetLastError(), "silu_mul_kernel");
}
