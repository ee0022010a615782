// Cuboid-mean digest of full KV blocks (ArkVale's): two vectors that bound a block's keys, trimmed
// to their mean spread.
//
//   c_d = (max_t K[t][d] + min_t K[t][d]) / 2      r_d = mean_t |K[t][d] - c_d|
//   meta = [c + r, c - r]                          K [T][D] fp16
//
// One warp a block, 8 dimensions a lane, so that D / 8 lanes share a token. A tile of K stays in
// registers from the bounds to the spread: all of its loads are under way at once, and a block of
// up to a tile (32 tokens at D = 128, 64 at D = 64) is read once. Of longer ones the spread reads
// again all tiles but the last.
#include "common.cuh"
#include "half8.cuh"

namespace ss {

constexpr int kDigestThreads = 128;
constexpr int kDigestRows = 16;  // of a tile, a lane

template <int D>
struct digest_tile {
  static constexpr int kLanes = D / 8;         // of a token
  static constexpr int kTokens = 32 / kLanes;  // of one load of the warp
  static constexpr int kTile = kDigestRows * kTokens;
  uint4 row[kDigestRows];

  // A lane has every kTokens-th token of the tile; k is its piece of the first one, and `left`
  // tokens of the block begin there.
  __device__ void load(const uint4 *k, int left) {
#pragma unroll
    for (int j = 0; j < kDigestRows; j++)
      if (j * kTokens < left) row[j] = k[j * kTokens * kLanes];
  }

  // Bounds of halves are halves: exact.
  __device__ void bound(int left, __half2 (&low)[4], __half2 (&high)[4]) const {
#pragma unroll
    for (int j = 0; j < kDigestRows; j++)
      if (j * kTokens < left) {
        const __half2 *x = reinterpret_cast<const __half2 *>(&row[j]);
#pragma unroll
        for (int p = 0; p < 4; p++)
          low[p] = __hmin2(low[p], x[p]), high[p] = __hmax2(high[p], x[p]);
      }
  }

  __device__ void spread(int left, const float (&centre)[8], float (&sum)[8]) const {
#pragma unroll
    for (int j = 0; j < kDigestRows; j++)
      if (j * kTokens < left) {
        float x[8];
        unpack8(row[j], x);
#pragma unroll
        for (int p = 0; p < 8; p++) sum[p] += fabsf(x[p] - centre[p]);
      }
  }
};

template <int D>
__global__ void __launch_bounds__(kDigestThreads) digest_kernel(ss_digest_args a) {
  using tile = digest_tile<D>;
  const int64_t i = int64_t(blockIdx.x) * (kDigestThreads / 32) + threadIdx.x / 32;
  if (i >= a.count) return;
  const int lane = threadIdx.x % 32, token = lane / tile::kLanes, piece = lane % tile::kLanes,
            tokens = a.block_tokens - token;
  const int64_t block_bytes = int64_t(4) * a.block_tokens * D, dst = a.dst[i];
  const uint4 *k =
      reinterpret_cast<const uint4 *>(static_cast<const char *>(a.pool) + a.slot[i] * block_bytes) +
      lane;

  tile held;
  __half2 low[4], high[4];
#pragma unroll
  for (int p = 0; p < 4; p++)
    low[p] = __float2half2_rn(INFINITY), high[p] = __float2half2_rn(-INFINITY);
  int at = 0;  // the held tile's first token
  for (;; at += tile::kTile) {
    held.load(k + at * tile::kLanes, tokens - at);
    held.bound(tokens - at, low, high);
    if (at + tile::kTile >= a.block_tokens) break;
  }
#pragma unroll
  for (int other = tile::kLanes; other < 32; other *= 2)
#pragma unroll
    for (int p = 0; p < 4; p++) {
      low[p] = __hmin2(low[p], __shfl_xor_sync(~0u, low[p], other));
      high[p] = __hmax2(high[p], __shfl_xor_sync(~0u, high[p], other));
    }
  float centre[8], sum[8] = {};
#pragma unroll
  for (int p = 0; p < 4; p++) {
    const float2 l = __half22float2(low[p]), h = __half22float2(high[p]);
    centre[2 * p] = (h.x + l.x) / 2, centre[2 * p + 1] = (h.y + l.y) / 2;
  }
  for (;; held.load(k + at * tile::kLanes, tokens - at)) {
    held.spread(tokens - at, centre, sum);
    if (at == 0) break;
    at -= tile::kTile;
  }
#pragma unroll
  for (int other = tile::kLanes; other < 32; other *= 2)
#pragma unroll
    for (int p = 0; p < 8; p++) sum[p] += __shfl_xor_sync(~0u, sum[p], other);
  if (token > 1) return;
  float x[8];  // of one token's lanes c + r, of the next one's c - r
#pragma unroll
  for (int p = 0; p < 8; p++) {
    const float r = sum[p] / float(a.block_tokens);
    x[p] = token == 0 ? centre[p] + r : centre[p] - r;
  }
  reinterpret_cast<uint4 *>(static_cast<__half *>(a.meta) + (2 * dst + token) * D)[piece] =
      pack8(x);
}

}  // namespace ss

extern "C" int ss_digest(const ss_digest_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->count >= 0 && args->count < int64_t(1) << 32);
  SS_NEED(args->head_dim == 64 || args->head_dim == 128);
  SS_NEED(args->block_tokens > 0);
  if (args->count == 0) return SS_OK;
  SS_NEED(args->pool != nullptr && args->slot != nullptr && args->dst != nullptr &&
          args->meta != nullptr);
  SS_NEED(uintptr_t(args->pool) % 16 == 0 && uintptr_t(args->meta) % 16 == 0);
  const unsigned ctas = unsigned(ss::ceil_div64(args->count, ss::kDigestThreads / 32));
  if (args->head_dim == 128)
    ss::digest_kernel<128><<<ctas, ss::kDigestThreads, 0, ss::stream_of(stream)>>>(*args);
  else
    ss::digest_kernel<64><<<ctas, ss::kDigestThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "digest_kernel");
}
