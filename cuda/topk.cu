// Top-k blocks of every unit from given scores (order and method: topk.cuh; shapes: sparseserve.h,
// ss_topk_args). One CTA a unit.
#include "topk.cuh"

namespace ss {

__global__ void __launch_bounds__(kTopkThreads) topk_kernel(ss_topk_args a) {
  extern __shared__ __align__(16) char shared[];
  const int unit = blockIdx.x, n = a.blocks[unit];
  const float *scores = a.scores + int64_t(unit) * a.score_stride;
  const TopkSpace s = topk_space(shared, n);
  for (int i = threadIdx.x; i < n; i += kTopkThreads)
    s.key[i] = i < a.sink || i >= n - a.window ? kForced : key_of(scores[i]);
  __syncthreads();
  topk_in_shared(s, n, a.k, a.list + int64_t(unit) * a.list_stride, a.count + unit);
}

}  // namespace ss

extern "C" int ss_topk(const ss_topk_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_TRY(ss::check_topk(*args));
  SS_NEED(args->scores != nullptr);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int64_t shared = ss::topk_space_bytes(args->score_stride, args->k);
  const int64_t limit = found.shared_bytes - 4096;  // what the kernel declares itself
  if (shared > limit)
    return ss::fail(SS_ERR_ARGUMENT, "ss_topk: %d blocks do not fit this GPU's shared memory",
                    args->score_stride);
  SS_TRY(ss::allow_shared<ss::topk_kernel>(int(limit)));
  ss::topk_kernel<<<unsigned(args->units), ss::kTopkThreads, size_t(shared),
                    ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "topk_kernel");
}
