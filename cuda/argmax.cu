// Greedy token of each row of logits (shapes: sparseserve.h, ss_argmax_args).
//
// A row is read in pieces of 8 values at multiples of 16 bytes; where stride is no multiple of 8
// its first and last piece hold foreign values, which count as -inf. Threads look for the piece
// with the largest value; the lowest value in it is found once, at the end. In a small batch the
// CTAs of a row are a cluster, and each sends its best to the first.
#include "cluster.cuh"

namespace ss {

constexpr int kArgmaxThreads = 512;
constexpr int kArgmaxLoads = 4;  // in flight a thread

struct Best {
  float value;
  int piece;  // INT32_MAX: none yet
};

__device__ inline Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.piece < a.piece) ? b : a;
}

__device__ inline Best warp_best(Best x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    x = better(x, {__shfl_xor_sync(~0u, x.value, step), __shfl_xor_sync(~0u, x.piece, step)});
  return x;
}

// Values first .. first + 8 of a row; those outside 0 .. vocab are -inf.
__device__ inline uint4 load_logits(const uint16_t *row, int64_t first, int vocab) {
  if (first >= 0 && first + 8 <= vocab) return *reinterpret_cast<const uint4 *>(row + first);
  constexpr uint32_t kMinusInfinity = 0xfc00;
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int64_t at = first + 2 * i;
    const uint32_t low = at >= 0 && at < vocab ? row[at] : kMinusInfinity,
                   high = at + 1 >= 0 && at + 1 < vocab ? row[at + 1] : kMinusInfinity;
    word[i] = low | high << 16;
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

// NaN loses against any number; eight NaNs give a NaN, which wins no comparison.
__device__ inline float largest(uint4 v) {
  const auto pair = [](const uint32_t &word) { return *reinterpret_cast<const __half2 *>(&word); };
  const __half2 m = __hmax2(__hmax2(pair(v.x), pair(v.y)), __hmax2(pair(v.z), pair(v.w)));
  return __half2float(__hmax(__low2half(m), __high2half(m)));
}

static __global__ void __launch_bounds__(kArgmaxThreads) argmax_kernel(ss_argmax_args a) {
  __shared__ Best part[kArgmaxThreads / 32], cta[kClusterMax];
  const int parts = cluster_ctas(), rank = cluster_rank(), row_index = blockIdx.x / parts,
            lane = threadIdx.x % 32;
  cluster_arrive();  // no CTA is written to before it has started
  const uint16_t *row = static_cast<const uint16_t *>(a.logits) + int64_t(row_index) * a.stride;
  // foreign values in the first piece
  const int before = int(reinterpret_cast<uintptr_t>(row) % 16 / 2);
  const int pieces = (before + a.vocab + 7) / 8, step = parts * kArgmaxThreads;

  Best best = {-INFINITY, INT32_MAX};
  for (int piece = rank * kArgmaxThreads + threadIdx.x; piece < pieces;
       piece += kArgmaxLoads * step) {
    uint4 v[kArgmaxLoads];
#pragma unroll
    for (int i = 0; i < kArgmaxLoads; i++)
      v[i] = load_logits(row, int64_t(piece + i * step) * 8 - before, a.vocab);
#pragma unroll
    for (int i = 0; i < kArgmaxLoads; i++) {
      const float value = largest(v[i]);
      if (value > best.value) best = {value, piece + i * step};
    }
  }
  best = warp_best(best);
  if (lane == 0) part[threadIdx.x / 32] = best;
  __syncthreads();
  cluster_wait();
  if (threadIdx.x < 32) {
    best = warp_best(lane < kArgmaxThreads / 32 ? part[lane] : Best{-INFINITY, INT32_MAX});
    if (lane == 0 && rank == 0) cta[0] = best;
    if (lane == 0 && rank > 0) {
      const uint32_t to = cluster_address(&cta[rank], 0);
      cluster_store(to, best.value);
      cluster_store(to + uint32_t(offsetof(Best, piece)), __int_as_float(best.piece));
    }
  }
  __syncthreads();
  cluster_arrive();
  cluster_wait();
  if (rank != 0 || threadIdx.x != 0) return;
  for (int i = 0; i < parts; i++) best = better(best, cta[i]);
  int at = 0;  // of a row without a number above -inf
  if (best.piece != INT32_MAX) {
    at = best.piece * 8 - before;
    while (at < 0 || __half2float(reinterpret_cast<const __half *>(row)[at]) != best.value) at++;
  }
  a.out[row_index] = at;
}

}  // namespace ss

extern "C" int ss_argmax(const ss_argmax_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->rows >= 0 && args->vocab > 0 && args->vocab <= 1 << 24 &&
          args->stride >= args->vocab);
  if (args->rows == 0) return SS_OK;
  SS_NEED(args->logits != nullptr && args->out != nullptr);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int ctas = ss::cluster_size(found, args->rows, found.sm_count * 2);
  SS_NEED(int64_t(args->rows) * ctas < int64_t(1) << 31);
  if (ctas > 1)
    return ss::launch_cluster(ss::argmax_kernel, dim3(unsigned(args->rows * ctas)),
                              ss::kArgmaxThreads, 0, ctas, ss::stream_of(stream), *args);
  ss::argmax_kernel<<<unsigned(args->rows), ss::kArgmaxThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "argmax_kernel");
}
