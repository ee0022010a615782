// Criticality scores of all units (equation: scores.cuh; shapes: sparseserve.h, ss_scores_args).
#include "scores.cuh"

namespace ss {

constexpr int kScoreThreads = 128;

template <int D>
__global__ void __launch_bounds__(kScoreThreads) scores_kernel(ss_scores_args a) {
  const int unit = blockIdx.y, group = a.heads_q / a.heads_kv, count = a.count[unit];
  const int first = (int(blockIdx.x) * (kScoreThreads / 32) + int(threadIdx.x) / 32) * kScoreBlocks<D>;
  if (first >= count) return;
  const MergedQuery<D> q(static_cast<const __half *>(a.q) + int64_t(unit) * group * D, group);
  float *out = a.scores + int64_t(unit) * a.score_stride;
  score_blocks<D>(q, static_cast<const __half *>(a.meta) + a.first[unit] * 2 * D, first, count, [out](int i, float score) { out[i] = score; });
}

template <int D>
static int launch_scores(const ss_scores_args &a, cudaStream_t stream) {
  const int per_cta = kScoreThreads / 32 * kScoreBlocks<D>;
  const dim3 grid(unsigned(ceil_div(a.max_blocks, per_cta)), unsigned(a.batch * a.heads_kv));
  scores_kernel<D><<<grid, kScoreThreads, 0, stream>>>(a);
  return check(cudaGetLastError(), "scores_kernel");
}

}  // namespace ss

extern "C" int ss_scores(const ss_scores_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_TRY(ss::check_scores(*args));
  SS_NEED(args->scores != nullptr);
  SS_NEED(args->batch * args->heads_kv <= 65535);
  if (args->max_blocks == 0) return SS_OK;
  if (args->head_dim == 128) return ss::launch_scores<128>(*args, ss::stream_of(stream));
  return ss::launch_scores<64>(*args, ss::stream_of(stream));
}
