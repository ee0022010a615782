// Eight fp16 values as one 16-byte access, and the roundings that a model in fp16 makes between its
// steps.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace ss {

__device__ inline void unpack8(uint4 v, float (&x)[8]) {
  const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&word[i]));
    x[2 * i] = f.x, x[2 * i + 1] = f.y;
  }
}

__device__ inline uint4 pack8(const float (&x)[8]) {
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const __half2 h = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
    word[i] = *reinterpret_cast<const uint32_t *>(&h);
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

// The value as fp16 holds it.
__device__ inline float rounded(float x) { return __half2float(__float2half_rn(x)); }

}  // namespace ss
