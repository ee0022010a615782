// Token embedding (equation and shapes: sparseserve.h, ss_embed_args): rows of a table by their
// numbers, 16 bytes a thread and access.
#include "common.cuh"

namespace ss {

constexpr int kEmbedThreads = 256;
constexpr int kEmbedPieces = 2;  // of 16 bytes, a thread

static __global__ void __launch_bounds__(kEmbedThreads) embed_kernel(ss_embed_args a, int chunks) {
  const int token = blockIdx.x / chunks, pieces = a.hidden / 8;
  const int first = (blockIdx.x % chunks) * kEmbedThreads * kEmbedPieces + threadIdx.x;
  const uint4 *from = static_cast<const uint4 *>(a.table) + int64_t(a.token[token]) * pieces;
  uint4 *to = static_cast<uint4 *>(a.out) + int64_t(token) * pieces;
  uint4 v[kEmbedPieces];
#pragma unroll
  for (int p = 0; p < kEmbedPieces; p++)
    if (first + p * kEmbedThreads < pieces) v[p] = from[first + p * kEmbedThreads];
#pragma unroll
  for (int p = 0; p < kEmbedPieces; p++)
    if (first + p * kEmbedThreads < pieces) to[first + p * kEmbedThreads] = v[p];
}

}  // namespace ss

extern "C" int ss_embed(const ss_embed_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->hidden > 0 && args->hidden % 8 == 0);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->table != nullptr && args->token != nullptr && args->out != nullptr);
  const int chunks = ss::ceil_div(args->hidden / 8, ss::kEmbedThreads * ss::kEmbedPieces);
  SS_NEED(int64_t(args->tokens) * chunks < int64_t(1) << 31);
  ss::embed_kernel<<<unsigned(args->tokens * chunks), ss::kEmbedThreads, 0,
                     ss::stream_of(stream)>>>(*args, chunks);
  return ss::check(cudaGetLastError(), "embed_kernel");
}
