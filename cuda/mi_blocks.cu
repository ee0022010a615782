// The k best blocks of each 64 queries by pooled queries and keys, as lists of tiles
// (ss_mi_blocks_args in sparseserve.h; MInference's Algorithm 3: its softmax keeps the order).
//
// Scores of as many rows as the scratch memory holds are products of 64 x 64 tiles; then a CTA a
// tile of 128 queries chooses for both halves (topk.cuh) and parts what they chose by who sees it.
#include "mi_mma.cuh"
#include "mi_scan.cuh"
#include "topk.cuh"

namespace ss {

struct Blocks {
  ss_mi_blocks_args a;
  int rows, blocks, tiles, stride;  // rows of 64 queries and blocks of 64 keys of a head
  int first_row, some, first_head;  // of this launch
};

// Blocks that a row of queries may see.
__device__ inline int seen_blocks(const Blocks &b, int row) {
  return (b.a.prefix + min((row + 1) * kMiBlock, b.a.q_tokens) - 1) / kMiBlock + 1;
}

__global__ void __launch_bounds__(kMiThreads) pooled_kernel(Blocks b) {
  extern __shared__ __align__(128) char shared[];
  const int row0 = b.first_row + blockIdx.y * kMiBlock, block0 = blockIdx.x * kMiBlock,
            head = b.first_head + blockIdx.z;
  if (block0 >= seen_blocks(b, min(row0 + kMiBlock, b.rows) - 1)) return;
  const uint32_t q_tile = shared_address(shared), k_tile = q_tile + kMiTileBytes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __half *q = static_cast<const __half *>(b.a.q) + int64_t(head) * b.rows * kMiDim;
  const __half *k = static_cast<const __half *>(b.a.k) +
                    int64_t(head / (b.a.heads_q / b.a.heads_kv)) * b.blocks * kMiDim;
  mi_copy_rows(q_tile, q, kMiDim, b.rows, [=](int i) { return row0 + i; });
  mi_copy_rows(k_tile, k, kMiDim, b.blocks, [=](int i) { return block0 + i; });
  copy_wait<0>();
  __syncthreads();
  float s[8][4];
  mi_scores(s, q_tile, k_tile, warp, lane);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = row0 + warp * 16 + lane / 4 + h * 8;
    if (row >= min(b.rows, b.first_row + b.some)) continue;
    float *out = b.a.scores + (int64_t(blockIdx.z) * b.some + row - b.first_row) * b.stride +
                 block0 + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; n++)
      *reinterpret_cast<float2 *>(out + n * 8) = make_float2(s[n][2 * h], s[n][2 * h + 1]);
  }
}

// Blocks whose bits `bits_of` gives, ascending; returns how many. A thread has a run of words.
template <typename BitsOf>
__device__ inline int write_bits(int words, int32_t *out, BitsOf bits_of) {
  static_assert(kTopkThreads == kScanThreads);
  const int each = (words + kTopkThreads - 1) / kTopkThreads,
            from = min(words, int(threadIdx.x) * each), to = min(words, from + each);
  uint32_t n = 0, all;
  for (int w = from; w < to; w++) n += __popc(bits_of(w));
  uint32_t before = scan(n, &all);
  for (int w = from; w < to; w++)
    for (uint32_t bits = bits_of(w); bits != 0; bits &= bits - 1)
      out[before++] = (w * 32 + __ffs(int(bits)) - 1) * kMiBlock;
  return int(all);
}

__global__ void __launch_bounds__(kTopkThreads) choose_kernel(Blocks b) {
  extern __shared__ __align__(128) char shared[];
  __shared__ int count;
  const int head = b.first_head + blockIdx.y, tile = b.first_row / 2 + blockIdx.x;
  const int words = (b.blocks + 31) / 32, k = b.a.top;
  uint32_t *bits = reinterpret_cast<uint32_t *>(shared);  // [2][words], then the list and the keys
  int32_t *list = reinterpret_cast<int32_t *>(bits + 2 * words);
  char *space = shared + (int64_t(2 * words + k) * 4 + 15) / 16 * 16;
  for (int w = threadIdx.x; w < 2 * words; w += kTopkThreads) bits[w] = 0;
  __syncthreads();
  for (int h = 0; h < 2; h++) {
    const int row = 2 * tile + h;
    if (row >= b.rows) break;
    const int n = seen_blocks(b, row);
    const TopkSpace s = topk_space(space, n);
    const float *scores =
        b.a.scores + (int64_t(blockIdx.y) * b.some + row - b.first_row) * b.stride;
    if (n <= k) {  // all of them, whatever their scores
      for (int w = threadIdx.x; w < (n + 31) / 32; w += kTopkThreads)
        bits[h * words + w] = n - w * 32 >= 32 ? ~0u : (1u << (n - w * 32)) - 1;
      continue;
    }
    for (int i = threadIdx.x; i < n; i += kTopkThreads) s.key[i] = key_of(scores[i]);
    __syncthreads();
    topk_in_shared(s, n, k, list, &count);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kTopkThreads)
      atomicOr(&bits[h * words + list[i] / 32], 1u << (list[i] % 32));
    __syncthreads();
  }
  __syncthreads();
  const int64_t at = int64_t(head) * b.tiles + tile;
  int32_t *out = b.a.blocks + at * b.a.block_stride;
  const int both = write_bits(words, out, [=](int w) { return bits[w] & bits[words + w]; });
  const int first =
      write_bits(words, out + both, [=](int w) { return bits[w] & ~bits[words + w]; });
  const int second =
      write_bits(words, out + both + first, [=](int w) { return ~bits[w] & bits[words + w]; });
  if (threadIdx.x == 0)
    *reinterpret_cast<int4 *>(b.a.counts + at * 4) = make_int4(both, first, second, 0);
}

static int choose_bytes(const Blocks &b) {
  const int words = (b.blocks + 31) / 32;
  return int((int64_t(2 * words + b.a.top) * 4 + 15) / 16 * 16 +
             topk_space_bytes(b.blocks, b.a.top));
}

}  // namespace ss

extern "C" int ss_mi_blocks(const ss_mi_blocks_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  const ss_mi_blocks_args &a = *args;
  SS_NEED(a.heads_kv > 0 && a.heads_q > 0 && a.heads_q % a.heads_kv == 0 && a.q_tokens > 0 &&
          a.prefix >= 0);
  SS_NEED(int64_t(a.q_tokens) + a.prefix <= ss::kNoBlock - ss::kMiQueries);
  SS_NEED(a.top > 0 && a.top <= SS_TOPK_MAX && a.block_stride >= 2 * a.top);
  SS_NEED(a.q != nullptr && a.k != nullptr && a.blocks != nullptr && a.counts != nullptr &&
          a.scores != nullptr);
  ss::Blocks b = {a,
                  ss::ceil_div(a.q_tokens, ss::kMiBlock),
                  ss::ceil_div(a.prefix + a.q_tokens, ss::kMiBlock),
                  ss::ceil_div(a.q_tokens, ss::kMiQueries),
                  0,
                  0,
                  0,
                  0};
  b.stride = ss::ceil_div(b.blocks, ss::kMiBlock) * ss::kMiBlock;
  const int64_t held = a.score_count / b.stride;  // rows
  SS_NEED(held >= ss::kMiBlock || held >= b.rows);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int shared = ss::choose_bytes(b);
  if (shared > found.shared_bytes)
    return ss::fail(SS_ERR_UNSUPPORTED, "ss_mi_blocks: %d blocks do not fit shared memory",
                    b.blocks);
  SS_TRY(ss::allow_shared<ss::pooled_kernel>(2 * ss::kMiTileBytes));
  SS_TRY(ss::allow_shared<ss::choose_kernel>(shared));
  const cudaStream_t on = ss::stream_of(stream);
  // All rows of as many heads as fit, or as many rows of one as fit.
  const int heads = held >= b.rows ? int(held / b.rows < a.heads_q ? held / b.rows : a.heads_q) : 1;
  b.some = held >= b.rows ? b.rows : int(held / ss::kMiBlock * ss::kMiBlock);
  for (b.first_head = 0; b.first_head < a.heads_q; b.first_head += heads) {
    const unsigned now =
        unsigned(a.heads_q - b.first_head < heads ? a.heads_q - b.first_head : heads);
    for (b.first_row = 0; b.first_row < b.rows; b.first_row += b.some) {
      const int rows = b.rows - b.first_row < b.some ? b.rows - b.first_row : b.some;
      const int blocks = ss::ceil_div(a.prefix + (b.first_row + rows) * ss::kMiBlock, ss::kMiBlock);
      const dim3 grid(unsigned(ss::ceil_div(blocks < b.blocks ? blocks : b.blocks, ss::kMiBlock)),
                      unsigned(ss::ceil_div(rows, ss::kMiBlock)), now);
      ss::pooled_kernel<<<grid, ss::kMiThreads, 2 * ss::kMiTileBytes, on>>>(b);
      ss::choose_kernel<<<dim3(unsigned(ss::ceil_div(rows, 2)), now), ss::kTopkThreads, shared,
                          on>>>(b);
      SS_CUDA(cudaGetLastError());
    }
  }
  return SS_OK;
}
