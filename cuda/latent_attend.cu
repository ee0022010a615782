// The indexer's scores and absorbed latent attention to the tokens that it selects (equations and
// shapes: sparseserve.h). Not tuned: no tensor cores, a warp has one token at a time.
#include "common.cuh"

namespace ss {

constexpr int kAttendThreads = 128, kAttendWarps = kAttendThreads / 32;
constexpr int kIndexTokens = 64;  // of a CTA
constexpr int kRankMax = 512, kRopeMax = 128;

__device__ inline float attend_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

__global__ void __launch_bounds__(kAttendThreads) index_scores_kernel(ss_index_scores_args a) {
  extern __shared__ __half query[];  // [heads][dim]
  const int lane = threadIdx.x % 32, first = blockIdx.x * kIndexTokens;
  const int64_t row = blockIdx.y;
  const int end = min(a.context[row], first + kIndexTokens);
  if (first >= end) return;
  const auto *q = static_cast<const __half *>(a.q) + row * a.heads * a.dim;
  for (int i = threadIdx.x; i < a.heads * a.dim; i += kAttendThreads) query[i] = q[i];
  __syncthreads();
  const auto *weight = static_cast<const __half *>(a.weight) + row * a.heads;
  const auto *keys = reinterpret_cast<const __half *>(a.key[row]);
  for (int t = first + threadIdx.x / 32; t < end; t += kAttendWarps) {
    const __half *key = keys + int64_t(t) * a.dim;
    float score = 0;
    for (int h = 0; h < a.heads; h++) {
      float dot = 0;
      for (int d = lane; d < a.dim; d += 32)
        dot = fmaf(__half2float(query[h * a.dim + d]), __half2float(key[d]), dot);
      score = fmaf(__half2float(weight[h]), fmaxf(0.0f, attend_sum(dot)), score);
    }
    if (lane == 0) a.scores[row * a.stride + t] = a.scale * score;
  }
}

// A warp's softmax over the tokens that it has seen; lane i has values i, i + 32, .. of the sum.
struct WarpSoftmax {
  float max = -INFINITY, sum = 0;
  float out[kRankMax / 32] = {};
};

__global__ void __launch_bounds__(kAttendThreads) latent_attend_kernel(ss_latent_attend_args a) {
  __shared__ float query[kRankMax + kRopeMax], merged[kRankMax];
  __shared__ float maxima[kAttendWarps], sums[kAttendWarps];
  const int head = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row = blockIdx.y;
  const int width = a.rank + a.rope, n = a.count[row];
  const auto *q = static_cast<const __half *>(a.q) + (row * a.heads + head) * a.rank;
  const auto *rope = static_cast<const __half *>(a.q_rope) + row * a.rope_row + head * a.rope_head;
  for (int i = threadIdx.x; i < width; i += kAttendThreads)
    query[i] = a.scale * __half2float(i < a.rank ? q[i] : rope[i - a.rank]);
  __syncthreads();

  WarpSoftmax s;
  const auto *kv = reinterpret_cast<const __half *>(a.kv[row]);
  for (int i = warp; i < n; i += kAttendWarps) {
    const __half *at = kv + int64_t(a.list[row * a.stride + i]) * width;
    float score = 0, value[kRankMax / 32];
#pragma unroll
    for (int j = 0; j < kRankMax / 32; j++) {
      const int d = lane + 32 * j;
      value[j] = d < a.rank ? __half2float(at[d]) : 0.0f;
      if (d < a.rank) score = fmaf(query[d], value[j], score);
    }
    for (int d = a.rank + lane; d < width; d += 32)
      score = fmaf(query[d], __half2float(at[d]), score);
    score = attend_sum(score);
    const float top = fmaxf(s.max, score), keep = expf(s.max - top), weight = expf(score - top);
    s.max = top, s.sum = fmaf(s.sum, keep, weight);
#pragma unroll
    for (int j = 0; j < kRankMax / 32; j++) s.out[j] = fmaf(s.out[j], keep, weight * value[j]);
  }

  if (lane == 0) maxima[warp] = s.max, sums[warp] = s.sum;
  for (int i = threadIdx.x; i < a.rank; i += kAttendThreads) merged[i] = 0;
  __syncthreads();
  float top = -INFINITY, sum = 0;
  for (int w = 0; w < kAttendWarps; w++) top = fmaxf(top, maxima[w]);
  for (int w = 0; w < kAttendWarps; w++)
    if (sums[w] > 0) sum += sums[w] * expf(maxima[w] - top);
  const float share = s.sum > 0 ? expf(s.max - top) / sum : 0.0f;
  for (int w = 0; w < kAttendWarps; w++) {  // in order, so that the sum is always the same
    if (w == warp) {
#pragma unroll
      for (int j = 0; j < kRankMax / 32; j++)
        if (lane + 32 * j < a.rank) merged[lane + 32 * j] += share * s.out[j];
    }
    __syncthreads();
  }
  auto *out = static_cast<__half *>(a.out) + (row * a.heads + head) * a.rank;
  for (int i = threadIdx.x; i < a.rank; i += kAttendThreads) out[i] = __float2half_rn(merged[i]);
}

}  // namespace ss

extern "C" int ss_index_scores(const ss_index_scores_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->rows >= 0 && args->rows < 65536 && args->heads > 0 && args->dim > 0);
  SS_NEED(args->stride > 0 && int64_t(args->heads) * args->dim <= 16384);
  if (args->rows == 0) return SS_OK;
  SS_NEED(args->q != nullptr && args->weight != nullptr && args->key != nullptr);
  SS_NEED(args->context != nullptr && args->scores != nullptr);
  const dim3 ctas(unsigned(ss::ceil_div(args->stride, ss::kIndexTokens)), unsigned(args->rows));
  ss::index_scores_kernel<<<ctas, ss::kAttendThreads, size_t(2 * args->heads * args->dim),
                            ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "index_scores_kernel");
}

extern "C" int ss_latent_attend(const ss_latent_attend_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->rows >= 0 && args->rows < 65536 && args->heads > 0 && args->stride > 0);
  SS_NEED(args->rank > 0 && args->rank <= ss::kRankMax);
  SS_NEED(args->rope >= 0 && args->rope <= ss::kRopeMax);
  if (args->rows == 0) return SS_OK;
  SS_NEED(args->q != nullptr && args->q_rope != nullptr && args->kv != nullptr);
  SS_NEED(args->list != nullptr && args->count != nullptr && args->out != nullptr);
  ss::latent_attend_kernel<<<dim3(unsigned(args->heads), unsigned(args->rows)),
                             ss::kAttendThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "latent_attend_kernel");
}
