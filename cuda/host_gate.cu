// Holds a stream until the host opens it, then brings what the host has written: all that depends on
// the host's answer is launched before the answer is known, and no launch follows it.
//
//   wait until gate >> SS_GATE_BITS >= turn
//   dst[0 .. bytes) = src[0 .. bytes)
//   counted = gate mod 2^SS_GATE_BITS
//
// The gate is one word in pinned memory, so that the turn and what comes with it are read in one round
// trip over the link. Every CTA polls for itself: the first words of its part follow the poll that
// sees the gate open, without a barrier over the grid.
#include "common.cuh"

namespace ss {

constexpr int kGateThreads = 256;
constexpr int kGateCtas = 32;
constexpr int kGateWords = 4;  // of 16 bytes, in flight a thread

__device__ inline uint64_t read_gate(const uint64_t *gate) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(gate) : "memory");
  return value;
}

__global__ void __launch_bounds__(kGateThreads)
    host_gate_kernel(char *dst, const char *src, int64_t words, const uint64_t *gate, uint64_t turn,
                     int64_t *counted) {
  if (threadIdx.x == 0) {
    uint64_t value;
    do value = read_gate(gate);
    while ((value >> SS_GATE_BITS) < turn);
    if (blockIdx.x == 0 && counted != nullptr)
      *counted = int64_t(value & ((uint64_t(1) << SS_GATE_BITS) - 1));
  }
  __syncthreads();
  const int64_t threads = int64_t(gridDim.x) * kGateThreads,
                thread = int64_t(blockIdx.x) * kGateThreads + threadIdx.x;
  for (int64_t first = thread; first < words; first += threads * kGateWords) {
    uint4 value[kGateWords];
#pragma unroll
    for (int i = 0; i < kGateWords; i++)
      if (first + i * threads < words)
        value[i] = __ldcg(reinterpret_cast<const uint4 *>(src + (first + i * threads) * 16));
#pragma unroll
    for (int i = 0; i < kGateWords; i++)
      if (first + i * threads < words)
        *reinterpret_cast<uint4 *>(dst + (first + i * threads) * 16) = value[i];
  }
}

}  // namespace ss

extern "C" int ss_host_gate(const ss_host_gate_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->gate != nullptr && uintptr_t(args->gate) % 8 == 0);
  SS_NEED(args->bytes >= 0 && args->bytes % 16 == 0);
  SS_NEED(args->bytes == 0 || (args->dst != nullptr && args->src != nullptr));
  SS_NEED(uintptr_t(args->dst) % 16 == 0 && uintptr_t(args->src) % 16 == 0);
  SS_NEED(args->turn >= 0);
  const int64_t words = args->bytes / 16;
  const int64_t wanted = ss::ceil_div64(words > 0 ? words : 1, ss::kGateThreads);
  const int ctas = int(wanted < ss::kGateCtas ? wanted : ss::kGateCtas);
  ss::host_gate_kernel<<<ctas, ss::kGateThreads, 0, ss::stream_of(stream)>>>(
      static_cast<char *>(args->dst), static_cast<const char *>(args->src), words, args->gate,
      uint64_t(args->turn), args->counted);
  return ss::check(cudaGetLastError(), "host_gate_kernel");
}
