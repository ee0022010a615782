// Criticality scores of all units (equation: scores.cuh; shapes: sparseserve.h, ss_scores_args).
#include "scores.cuh"

namespace ss {

constexpr int kScoreThreads = 256;

template <int D>
__global__ void __launch_bounds__(kScoreThreads) scores_kernel(ss_scores_args a) {
  constexpr int kWarps = kScoreThreads / 32;
  const int unit = blockIdx.y, group = a.heads_q / a.heads_kv, count = a.count[unit];
  const int first = (int(blockIdx.x) * kWarps + int(threadIdx.x) / 32) * kScoreBlocks<D>;
  const int64_t meta = a.first[unit] * 2 * D;  // read before the branch, together with the count
  if (first >= count) return;
  float *out = a.scores + int64_t(unit) * a.score_stride;
  score_blocks<D>(static_cast<const __half *>(a.q) + int64_t(unit) * group * D, group,
                  static_cast<const __half *>(a.meta) + meta, first,
                  int(gridDim.x) * kWarps * kScoreBlocks<D>, count,
                  [out](int i, float score) { out[i] = score; });
}

template <int D>
static int launch_scores(const ss_scores_args &a, cudaStream_t stream) {
  Limits found;
  SS_TRY(limits(&found));
  const int units = a.batch * a.heads_kv, per_round = kScoreThreads / 32 * kScoreBlocks<D>;
  const int parts = score_parts(units, a.max_blocks, per_round, found.sm_count * 4);
  scores_kernel<D><<<dim3(unsigned(parts), unsigned(units)), kScoreThreads, 0, stream>>>(a);
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
