// Means of 64 tokens (ss_mi_pool_args in sparseserve.h): what stands for a block in MInference's
// block-sparse selection. A CTA a block of one head; a thread has 8 dimensions of every 16th token.
#include "half8.cuh"
#include "mi.cuh"

namespace ss {

constexpr int kPoolPieces = 16, kPoolRows = 16;

__global__ void __launch_bounds__(kPoolPieces *kPoolRows) pool_kernel(ss_mi_pool_args a) {
  __shared__ float sums[kPoolRows][kPoolPieces * 8 + 8];
  const int piece = threadIdx.x % kPoolPieces, row = threadIdx.x / kPoolPieces;
  const int first = blockIdx.x * kMiBlock, tokens = min(kMiBlock, a.tokens - first);
  const __half *x = static_cast<const __half *>(a.x) + int64_t(blockIdx.y) * a.head_stride +
                    int64_t(first) * a.token_stride + piece * 8;
  float sum[8] = {};
#pragma unroll
  for (int t = row; t < kMiBlock; t += kPoolRows)
    if (t < tokens) {
      float v[8];
      unpack8(*reinterpret_cast<const uint4 *>(x + t * a.token_stride), v);
#pragma unroll
      for (int i = 0; i < 8; i++) sum[i] += v[i];
    }
#pragma unroll
  for (int i = 0; i < 8; i++) sums[row][piece * 8 + i] = sum[i];
  __syncthreads();
  if (threadIdx.x >= kPoolPieces * 8) return;
  float all = 0;
#pragma unroll
  for (int r = 0; r < kPoolRows; r++) all += sums[r][threadIdx.x];
  static_cast<__half *>(a.out)[(int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * 128 + threadIdx.x] =
      __float2half(all / float(tokens));
}

}  // namespace ss

extern "C" int ss_mi_pool(const ss_mi_pool_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->heads > 0 && args->token_stride % 8 == 0 &&
          args->head_stride % 8 == 0);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->out != nullptr);
  ss::pool_kernel<<<dim3(unsigned(ss::ceil_div(args->tokens, ss::kMiBlock)), unsigned(args->heads)),
                    ss::kPoolPieces * ss::kPoolRows, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "pool_kernel");
}
