// Keys and values of KV blocks as tensors (ss_mi_gather_args in sparseserve.h): what the operations
// without tables read where a prompt has a prefix. A CTA has 64 tokens of one KV head, 16 threads a
// token, keys or values.
#include "mi.cuh"

namespace ss {

constexpr int kGatherPieces = 16, kGatherRows = 16;  // 16 bytes a thread

__global__ void __launch_bounds__(kGatherPieces *kGatherRows) gather_kernel(ss_mi_gather_args a) {
  const int piece = threadIdx.x % kGatherPieces, row = threadIdx.x / kGatherPieces;
  const int head = blockIdx.y, values = blockIdx.z;
  const int32_t *table = a.table + int64_t(head) * a.table_stride;
  uint4 *out = static_cast<uint4 *>(values ? a.v : a.k) + head * a.head_stride / 8 + piece;
  const uint4 *pool = static_cast<const uint4 *>(a.pool) + piece;
#pragma unroll
  for (int t = row; t < kMiBlock; t += kGatherRows) {
    const int token = blockIdx.x * kMiBlock + t;
    if (token >= a.tokens) continue;
    const int block = token / a.block_tokens, offset = token - block * a.block_tokens;
    const int64_t from = (int64_t(2) * table[block] + values) * a.block_tokens + offset;
    out[int64_t(token) * kGatherPieces] = pool[from * kGatherPieces];
  }
}

}  // namespace ss

extern "C" int ss_mi_gather(const ss_mi_gather_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->heads > 0 && args->block_tokens > 0);
  SS_NEED(args->head_stride % 8 == 0 && args->head_stride >= int64_t(args->tokens) * 128);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->pool != nullptr && args->table != nullptr && args->k != nullptr &&
          args->v != nullptr);
  ss::gather_kernel<<<dim3(unsigned(ss::ceil_div(args->tokens, ss::kMiBlock)),
                           unsigned(args->heads), 2),
                      ss::kGatherPieces * ss::kGatherRows, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "gather_kernel");
}
