// Small steps of latent attention: linears of each head, rotation of a part of each head, and what
// a layer keeps of each token (equations and shapes: sparseserve.h). Not tuned: a CTA has one token
// and head, or one token.
#include "common.cuh"
#include "half8.cuh"

namespace ss {

constexpr int kLatentThreads = 128, kLatentWarps = kLatentThreads / 32;
constexpr int kHeadInMax = 4096, kLatentMax = 1024;

__device__ inline float latent_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// The sum over a CTA, returned to all threads.
__device__ inline float latent_cta_sum(float x) {
  __shared__ float part[kLatentWarps];
  x = latent_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  float all = 0;
  for (int w = 0; w < kLatentWarps; w++) all += part[w];
  return all;
}

__global__ void __launch_bounds__(kLatentThreads) head_linear_kernel(ss_head_linear_args a) {
  __shared__ float x[kHeadInMax];
  const int head = blockIdx.x, lane = threadIdx.x % 32;
  const int64_t token = blockIdx.y;
  const auto *from = static_cast<const __half *>(a.x) + token * a.x_token + head * a.x_head;
  for (int i = threadIdx.x; i < a.in; i += kLatentThreads) x[i] = __half2float(from[i]);
  __syncthreads();
  const auto *w = static_cast<const __half *>(a.w) + int64_t(head) * a.out * a.in;
  auto *y = static_cast<__half *>(a.y) + (token * a.heads + head) * a.out;
  for (int o = threadIdx.x / 32; o < a.out; o += kLatentWarps) {
    float sum = 0;
    for (int i = lane; i < a.in; i += 32)
      sum = fmaf(x[i], __half2float(w[int64_t(o) * a.in + i]), sum);
    sum = latent_sum(sum);
    if (lane == 0) y[o] = __float2half_rn(sum);
  }
}

// Rotates value d of a head and its partner.
__device__ inline void rotate_pair(float angle, float *x, float *y) {
  float s, c;
  sincosf(angle, &s, &c);
  s = rounded(s), c = rounded(c);
  const float u = rounded(*x * c) - rounded(*y * s), v = rounded(*y * c) + rounded(*x * s);
  *x = u, *y = v;
}

__global__ void __launch_bounds__(kLatentThreads) rotate_kernel(ss_rotate_args a) {
  const int half = a.dim / 2;
  const int64_t token = blockIdx.x;
  auto *x = static_cast<__half *>(a.x) + token * a.token_stride;
  const float position = float(a.position[token]);
  for (int i = threadIdx.x; i < a.heads * half; i += kLatentThreads) {
    const int d = i % half;
    __half *at = x + (i / half) * a.head_stride + d;
    float low = __half2float(at[0]), high = __half2float(at[half]);
    rotate_pair(position * a.inv_freq[d], &low, &high);
    at[0] = __float2half_rn(low), at[half] = __float2half_rn(high);
  }
}

__global__ void __launch_bounds__(kLatentThreads) latent_write_kernel(ss_latent_write_args a) {
  __shared__ float key[kLatentMax];
  const int64_t token = blockIdx.x;
  const float position = float(a.position[token]);
  const int half = a.rope / 2;
  const auto *latent = static_cast<const __half *>(a.latent) + token * (a.rank + a.rope);
  auto *row = reinterpret_cast<__half *>(a.row_to[token]);
  float square = 0;
  for (int i = threadIdx.x; i < a.rank; i += kLatentThreads) {
    const float x = __half2float(latent[i]);
    square = fmaf(x, x, square);
  }
  const float inverse = rsqrtf(latent_cta_sum(square) / float(a.rank) + a.eps);
  const auto *norm = static_cast<const __half *>(a.norm);
  for (int i = threadIdx.x; i < a.rank; i += kLatentThreads)
    row[i] = __float2half_rn(rounded(__half2float(latent[i]) * inverse) * __half2float(norm[i]));
  for (int d = threadIdx.x; d < half; d += kLatentThreads) {
    float low = __half2float(latent[a.rank + d]), high = __half2float(latent[a.rank + half + d]);
    rotate_pair(position * a.inv_freq[d], &low, &high);
    row[a.rank + d] = __float2half_rn(low), row[a.rank + half + d] = __float2half_rn(high);
  }

  const auto *from = static_cast<const __half *>(a.key) + token * a.key_dim;
  auto *to = reinterpret_cast<__half *>(a.key_to[token]);
  float sum = 0;
  for (int i = threadIdx.x; i < a.key_dim; i += kLatentThreads) sum += __half2float(from[i]);
  const float mean = latent_cta_sum(sum) / float(a.key_dim);
  square = 0;
  for (int i = threadIdx.x; i < a.key_dim; i += kLatentThreads) {
    const float x = __half2float(from[i]) - mean;
    square = fmaf(x, x, square);
  }
  const float scale = rsqrtf(latent_cta_sum(square) / float(a.key_dim) + a.eps);
  const auto *weight = static_cast<const __half *>(a.key_norm);
  const auto *bias = static_cast<const __half *>(a.key_bias);
  for (int i = threadIdx.x; i < a.key_dim; i += kLatentThreads)
    key[i] = rounded(rounded((__half2float(from[i]) - mean) * scale) * __half2float(weight[i]) +
                     __half2float(bias[i]));
  __syncthreads();
  for (int i = threadIdx.x; i < a.key_dim; i += kLatentThreads) {
    if (i < half) {
      float low = key[i], high = key[half + i];
      rotate_pair(position * a.inv_freq[i], &low, &high);
      to[i] = __float2half_rn(low), to[half + i] = __float2half_rn(high);
    } else if (i >= a.rope) {
      to[i] = __float2half_rn(key[i]);
    }
  }
}

}  // namespace ss

extern "C" int ss_head_linear(const ss_head_linear_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->tokens < 65536 && args->heads > 0 && args->out > 0);
  SS_NEED(args->in > 0 && args->in <= ss::kHeadInMax);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->w != nullptr && args->y != nullptr);
  ss::head_linear_kernel<<<dim3(unsigned(args->heads), unsigned(args->tokens)),
                           ss::kLatentThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "head_linear_kernel");
}

extern "C" int ss_rotate(const ss_rotate_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->heads > 0 && args->dim > 0 && args->dim % 2 == 0);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->x != nullptr && args->position != nullptr && args->inv_freq != nullptr);
  ss::rotate_kernel<<<unsigned(args->tokens), ss::kLatentThreads, 0, ss::stream_of(stream)>>>(
      *args);
  return ss::check(cudaGetLastError(), "rotate_kernel");
}

extern "C" int ss_latent_write(const ss_latent_write_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->rope > 0 && args->rope % 2 == 0 && args->eps >= 0);
  SS_NEED(args->rank > 0 && args->rank <= ss::kLatentMax);
  SS_NEED(args->key_dim >= args->rope && args->key_dim <= ss::kLatentMax);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->latent != nullptr && args->key != nullptr && args->norm != nullptr);
  SS_NEED(args->key_norm != nullptr && args->key_bias != nullptr);
  SS_NEED(args->position != nullptr && args->inv_freq != nullptr);
  SS_NEED(args->row_to != nullptr && args->key_to != nullptr);
  ss::latent_write_kernel<<<unsigned(args->tokens), ss::kLatentThreads, 0,
                            ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "latent_write_kernel");
}
