// Rotary position embedding of q and k in place, and the stores that follow it: q packed for
// decode, k and v into their KV blocks (equations and shapes: sparseserve.h, ss_rope_args).
//
// A CTA has one token and as many heads as its threads cover; a thread owns 8 dimensions of a
// head's lower half and their partners of the upper. The angles of a token are the same for all
// heads: a CTA computes them once, while its loads of qkv are on their way.
#include "common.cuh"
#include "half8.cuh"

namespace ss {

constexpr int kRopeThreads = 128;

// Slot of one token's block: table entries are slots, or pages of one slot a KV head.
__device__ inline int64_t slot_of(const ss_rope_args &a, int token, int block, int kv_head) {
  const int row = a.row != nullptr ? a.row[token] : 0;
  const int first = a.first != nullptr ? a.first[row] : 0;
  if (a.pages) return int64_t(a.table[row * a.row_stride + block - first]) * a.heads_kv + kv_head;
  return a.table[row * a.row_stride + kv_head * a.head_stride + block - first];
}

// Where this thread's 16 bytes of a K or V head go: the lower half's piece; the upper half's is D
// bytes further on.
template <int D>
__device__ inline char *block_place(const ss_rope_args &a, int token, int position, int kv_head,
                                    bool value, int piece) {
  const int block = position / a.block_tokens, offset = position - block * a.block_tokens;
  const int64_t slot = slot_of(a, token, block, kv_head);
  const int64_t part = int64_t(2) * a.block_tokens * D;  // bytes of K, and of V
  return static_cast<char *>(a.pool) + (2 * slot + value) * part + offset * 2 * D + piece * 16;
}

template <int D>
__global__ void __launch_bounds__(kRopeThreads) rope_kernel(ss_rope_args a, int chunks) {
  constexpr int kPieces = D / 16;                 // threads a head
  constexpr int kHeads = kRopeThreads / kPieces;  // a CTA
  __shared__ float cosine[D / 2], sine[D / 2];
  const int token = blockIdx.x / chunks, piece = threadIdx.x % kPieces;
  // q heads, then k heads, then v heads
  const int head = (blockIdx.x % chunks) * kHeads + threadIdx.x / kPieces;
  const int heads = a.heads_q + 2 * a.heads_kv, rotated = a.heads_q + a.heads_kv;
  const bool mine = head < (a.pool != nullptr ? heads : rotated);
  const int position = a.position[token];
  uint4 *at = reinterpret_cast<uint4 *>(static_cast<__half *>(a.qkv) +
                                        (int64_t(token) * heads + head) * D) +
              piece;

  uint4 low = {}, high = {};
  char *to = nullptr;
  if (mine) {
    low = at[0], high = at[kPieces];
    if (a.pool != nullptr && head >= a.heads_q)
      to = block_place<D>(a, token, position, (head - a.heads_q) % a.heads_kv, head >= rotated,
                          piece);
  }
  if (threadIdx.x < D / 2) {
    float s, c;
    sincosf(float(position) * a.inv_freq[threadIdx.x], &s, &c);
    cosine[threadIdx.x] = rounded(c), sine[threadIdx.x] = rounded(s);
  }
  __syncthreads();
  if (!mine) return;

  if (head < rotated) {
    float x[8], y[8], u[8], v[8];
    unpack8(low, x);
    unpack8(high, y);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const float c = cosine[piece * 8 + j], s = sine[piece * 8 + j];
      u[j] = rounded(x[j] * c) - rounded(y[j] * s);
      v[j] = rounded(y[j] * c) + rounded(x[j] * s);
    }
    low = pack8(u), high = pack8(v);
    at[0] = low, at[kPieces] = high;
    if (a.q_out != nullptr && head < a.heads_q) {
      uint4 *out = reinterpret_cast<uint4 *>(static_cast<__half *>(a.q_out) +
                                             (int64_t(token) * a.heads_q + head) * D) +
                   piece;
      out[0] = low, out[kPieces] = high;
    }
  }
  if (to != nullptr) {
    *reinterpret_cast<uint4 *>(to) = low;
    *reinterpret_cast<uint4 *>(to + D) = high;
  }
}

template <int D>
static int launch_rope(const ss_rope_args &a, cudaStream_t stream) {
  const int heads = a.heads_q + (a.pool != nullptr ? 2 : 1) * a.heads_kv;
  const int chunks = ceil_div(heads, kRopeThreads / (D / 16));
  SS_NEED(int64_t(a.tokens) * chunks < int64_t(1) << 31);
  rope_kernel<D><<<unsigned(a.tokens * chunks), kRopeThreads, 0, stream>>>(a, chunks);
  return check(cudaGetLastError(), "rope_kernel");
}

// Puts k and v of each token, k rotated before, into their blocks: a thread moves 16 bytes.
template <int D>
__global__ void __launch_bounds__(kRopeThreads) kv_write_kernel(ss_rope_args a, int64_t pieces) {
  constexpr int kPieces = D / 8;
  for (int64_t i = int64_t(blockIdx.x) * kRopeThreads + threadIdx.x; i < pieces;
       i += int64_t(gridDim.x) * kRopeThreads) {
    const int piece = i % kPieces, head = i / kPieces % (2 * a.heads_kv),
              token = i / kPieces / (2 * a.heads_kv);
    const bool value = head >= a.heads_kv;
    const uint4 *from = reinterpret_cast<const uint4 *>(
        static_cast<const __half *>(a.qkv) +
        (int64_t(token) * (a.heads_q + 2 * a.heads_kv) + a.heads_q + head) * D);
    char *to = block_place<D>(a, token, a.position[token], head % a.heads_kv, value, piece);
    *reinterpret_cast<uint4 *>(to) = from[piece];
  }
}

template <int D>
static int launch_kv_write(const ss_rope_args &a, cudaStream_t stream) {
  const int64_t pieces = int64_t(a.tokens) * 2 * a.heads_kv * (D / 8);
  Limits found;
  SS_TRY(limits(&found));
  const int64_t ctas = (pieces + kRopeThreads - 1) / kRopeThreads;
  kv_write_kernel<D><<<unsigned(ctas < found.sm_count * 8 ? ctas : found.sm_count * 8),
                       kRopeThreads, 0, stream>>>(a, pieces);
  return check(cudaGetLastError(), "kv_write_kernel");
}

}  // namespace ss

extern "C" int ss_rope(const ss_rope_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->heads_q > 0 && args->heads_kv > 0);
  SS_NEED(args->head_dim == 64 || args->head_dim == 128);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->qkv != nullptr && args->position != nullptr && args->inv_freq != nullptr);
  SS_NEED(args->pool == nullptr || (args->table != nullptr && args->block_tokens > 0));
  if (args->head_dim == 128) return ss::launch_rope<128>(*args, ss::stream_of(stream));
  return ss::launch_rope<64>(*args, ss::stream_of(stream));
}

extern "C" int ss_kv_write(const ss_rope_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->tokens >= 0 && args->heads_q > 0 && args->heads_kv > 0);
  SS_NEED(args->head_dim == 64 || args->head_dim == 128);
  if (args->tokens == 0) return SS_OK;
  SS_NEED(args->qkv != nullptr && args->position != nullptr);
  SS_NEED(args->pool != nullptr && args->table != nullptr && args->block_tokens > 0);
  if (args->head_dim == 128) return ss::launch_kv_write<128>(*args, ss::stream_of(stream));
  return ss::launch_kv_write<64>(*args, ss::stream_of(stream));
}
