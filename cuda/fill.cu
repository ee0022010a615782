// Random fp16 data for timing, and an empty kernel for launch costs. Zeros would run faster than
// real data.
//
//   dst[i] = scale * (2 u_i - 1), u_i uniform in [0, 1) from a 64-bit mix of (seed, i)
#include "common.cuh"

namespace ss {

__device__ inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__global__ void fill_kernel(__half2 *dst, int64_t pairs, uint64_t seed, float scale) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs; i += step) {
    const uint64_t bits = mix(seed ^ mix(uint64_t(i)));
    const float a = float(uint32_t(bits) >> 8) * 0x1p-24f,
                b = float(uint32_t(bits >> 32) >> 8) * 0x1p-24f;
    dst[i] = __floats2half2_rn(scale * (2 * a - 1), scale * (2 * b - 1));
  }
}

__global__ void empty_kernel() {}

}  // namespace ss

extern "C" int ss_fill(const ss_fill_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->count >= 0 && args->count % 2 == 0);
  if (args->count == 0) return SS_OK;
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  ss::fill_kernel<<<found.sm_count * 8, 256, 0, ss::stream_of(stream)>>>(
      static_cast<__half2 *>(args->dst), args->count / 2, args->seed, args->scale);
  return ss::check(cudaGetLastError(), "fill_kernel");
}

extern "C" int ss_empty(const void *, ss_stream stream) {
  ss::empty_kernel<<<1, 32, 0, ss::stream_of(stream)>>>();
  return ss::check(cudaGetLastError(), "empty_kernel");
}
