// Cuboid-mean digest of full KV blocks (ArkVale's): two vectors that bound a block's keys, trimmed to their mean spread.
//
//   c_d = (max_t K[t][d] + min_t K[t][d]) / 2      r_d = mean_t |K[t][d] - c_d|      meta = [c + r, c - r]      K [T][D] fp16
//
// One warp a block, D / 32 dimensions a lane. The second pass over K comes from L1.
#include "common.cuh"

namespace ss {

constexpr int kDigestThreads = 128;

template <int D>
__global__ void __launch_bounds__(kDigestThreads) digest_kernel(ss_digest_args a) {
  constexpr int kPairs = D / 64;  // of dimensions, a lane
  const int64_t i = int64_t(blockIdx.x) * (kDigestThreads / 32) + threadIdx.x / 32;
  if (i >= a.count) return;
  const int lane = threadIdx.x % 32;
  const int64_t block_bytes = int64_t(4) * a.block_tokens * D;
  const __half2 *k = reinterpret_cast<const __half2 *>(static_cast<const char *>(a.pool) + a.slot[i] * block_bytes) + lane * kPairs;

  float2 low[kPairs], high[kPairs], spread[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; j++) low[j] = make_float2(INFINITY, INFINITY), high[j] = make_float2(-INFINITY, -INFINITY), spread[j] = make_float2(0, 0);
#pragma unroll 8
  for (int t = 0; t < a.block_tokens; t++)
#pragma unroll
    for (int j = 0; j < kPairs; j++) {
      const float2 x = __half22float2(k[t * (D / 2) + j]);
      low[j] = make_float2(fminf(low[j].x, x.x), fminf(low[j].y, x.y));
      high[j] = make_float2(fmaxf(high[j].x, x.x), fmaxf(high[j].y, x.y));
    }
#pragma unroll 8
  for (int t = 0; t < a.block_tokens; t++)
#pragma unroll
    for (int j = 0; j < kPairs; j++) {
      const float2 x = __half22float2(k[t * (D / 2) + j]);
      spread[j].x += fabsf(x.x - (high[j].x + low[j].x) / 2);
      spread[j].y += fabsf(x.y - (high[j].y + low[j].y) / 2);
    }
  __half2 *hi = static_cast<__half2 *>(a.meta) + a.dst[i] * D + lane * kPairs, *lo = hi + D / 2;
#pragma unroll
  for (int j = 0; j < kPairs; j++) {
    const float2 c = make_float2((high[j].x + low[j].x) / 2, (high[j].y + low[j].y) / 2);
    const float2 r = make_float2(spread[j].x / float(a.block_tokens), spread[j].y / float(a.block_tokens));
    hi[j] = __floats2half2_rn(c.x + r.x, c.y + r.y);
    lo[j] = __floats2half2_rn(c.x - r.x, c.y - r.y);
  }
}

}  // namespace ss

extern "C" int ss_digest(const ss_digest_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->count >= 0 && args->count < int64_t(1) << 32);
  SS_NEED(args->head_dim == 64 || args->head_dim == 128);
  SS_NEED(args->block_tokens > 0);
  if (args->count == 0) return SS_OK;
  SS_NEED(args->pool != nullptr && args->slot != nullptr && args->dst != nullptr && args->meta != nullptr);
  const unsigned ctas = unsigned(ss::ceil_div64(args->count, ss::kDigestThreads / 32));
  if (args->head_dim == 128)
    ss::digest_kernel<128><<<ctas, ss::kDigestThreads, 0, ss::stream_of(stream)>>>(*args);
  else
    ss::digest_kernel<64><<<ctas, ss::kDigestThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "digest_kernel");
}
