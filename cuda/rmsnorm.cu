// RMSNorm, with the residual addition before it (equation and shapes: sparseserve.h,
// ss_rmsnorm_args).
//
// One CTA a row. A thread keeps its pieces of the row in registers between the sum of squares and
// the scaling, so each byte moves once.
#include "common.cuh"
#include "half8.cuh"

namespace ss {

constexpr int kNormThreads = 256;  // of a CTA, until a row needs more
constexpr int kNormThreadsMax = 1024;
constexpr int kNormPiecesMax = 4;  // of 8 values, a thread
constexpr int kNormHiddenMax = kNormThreadsMax * kNormPiecesMax * 8;

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

template <int kPieces>
__global__ void __launch_bounds__(kNormThreadsMax) rmsnorm_kernel(ss_rmsnorm_args a) {
  __shared__ float part[kNormThreadsMax / 32];
  const int row = blockIdx.x, pieces = a.hidden / 8, lane = threadIdx.x % 32,
            warps = blockDim.x / 32;
  const int64_t from = a.row != nullptr ? a.row[row] : row;
  const uint4 *x = static_cast<const uint4 *>(a.x) + from * pieces;
  const uint4 *weight = static_cast<const uint4 *>(a.weight);
  uint4 *residual = static_cast<uint4 *>(a.residual) + int64_t(row) * pieces;
  uint4 *out = static_cast<uint4 *>(a.out) + int64_t(row) * pieces;

  uint4 h[kPieces], r[kPieces], w[kPieces];
#pragma unroll
  for (int p = 0; p < kPieces; p++) {
    const int i = threadIdx.x + p * blockDim.x;
    h[p] = r[p] = make_uint4(0, 0, 0, 0);
    if (i >= pieces) continue;
    h[p] = x[i];
    if (a.residual != nullptr) r[p] = residual[i];
  }

  float sum = 0;
#pragma unroll
  for (int p = 0; p < kPieces; p++) {
    float f[8], g[8];
    unpack8(h[p], f);
    if (a.residual != nullptr) {
      unpack8(r[p], g);
#pragma unroll
      for (int j = 0; j < 8; j++) f[j] += g[j];
      h[p] = pack8(f);
      unpack8(h[p], f);
      const int i = threadIdx.x + p * blockDim.x;
      if (i < pieces) residual[i] = h[p];
    }
#pragma unroll
    for (int j = 0; j < 8; j++) sum = fmaf(f[j], f[j], sum);
  }
#pragma unroll
  for (int p = 0; p < kPieces; p++) {
    const int i = threadIdx.x + p * blockDim.x;
    w[p] = i < pieces ? __ldg(weight + i) : make_uint4(0, 0, 0, 0);
  }
  sum = warp_sum(sum);
  if (lane == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = warp_sum(lane < warps ? part[lane] : 0);
  const float inverse = rsqrtf(sum / float(a.hidden) + a.eps);

#pragma unroll
  for (int p = 0; p < kPieces; p++) {
    const int i = threadIdx.x + p * blockDim.x;
    if (i >= pieces) break;
    float f[8], g[8];
    unpack8(h[p], f);
    unpack8(w[p], g);
#pragma unroll
    for (int j = 0; j < 8; j++) f[j] = rounded(f[j] * inverse) * g[j];
    out[i] = pack8(f);
  }
}

template <int kPieces>
static int launch_rmsnorm(const ss_rmsnorm_args &a, cudaStream_t stream) {
  const int threads = ceil_div(ceil_div(a.hidden / 8, kPieces), 32) * 32;
  rmsnorm_kernel<kPieces><<<unsigned(a.rows), threads, 0, stream>>>(a);
  return check(cudaGetLastError(), "rmsnorm_kernel");
}

}  // namespace ss

extern "C" int ss_rmsnorm(const ss_rmsnorm_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->rows >= 0 && args->hidden > 0 && args->hidden % 8 == 0 &&
          args->hidden <= ss::kNormHiddenMax);
  SS_NEED(args->eps >= 0);
  SS_NEED(args->residual == nullptr || args->row == nullptr);
  if (args->rows == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->weight != nullptr && args->out != nullptr);
  const int pieces = args->hidden / 8;
  if (pieces <= ss::kNormThreads) return ss::launch_rmsnorm<1>(*args, ss::stream_of(stream));
  if (pieces <= 2 * ss::kNormThreads) return ss::launch_rmsnorm<2>(*args, ss::stream_of(stream));
  return ss::launch_rmsnorm<ss::kNormPiecesMax>(*args, ss::stream_of(stream));
}
