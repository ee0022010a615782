// The producer of mi_hopper.cu: four warps that bring queries, keys and values to shared memory,
// from tensors, as gathered columns, or from KV blocks.
#pragma once

#include "mi_walk.cuh"

namespace ss {

__device__ inline void load_blocks(MiShared &s, const CUtensorMap &k, const CUtensorMap &v, int t,
                                   int2 start, int kv_head) {
  const int stage = stage_of(t);
  const auto tile = [&](const CUtensorMap &map, char *to, uint64_t *full) {
    const uint32_t at = shared_address(to), barrier = shared_address(full);
    barrier_expect(barrier, kTileBytes);
#pragma unroll
    for (int i = 0; i < 4; i++)
      copy_box(at + i / 2 * kHalfBytes + i % 2 * (kHalfBytes / 2), &map, barrier, i / 2 * 64,
               i % 2 ? start.y : start.x, kv_head);
  };
  wait_free(s.empty_k, t);
  s.start[stage] = start;
  tile(k, s.k[stage], s.full_k + stage);
  wait_free(s.empty_v, t);
  tile(v, s.v[stage], s.full_v + stage);
}

// Starts the copies of 128 rows of keys or values; a thread has the same piece of every eighth row.
__device__ inline void load_rows(char *to, const __half *from, int64_t stride,
                                 const int32_t *column) {
  const uint32_t at = shared_address(to);
  const int piece = threadIdx.x % 16;
#pragma unroll 4
  for (int row = threadIdx.x / 16; row < kTileKeys; row += 8) {
    const int entry = column[row], key = entry & kColumnBits;
    copy_async(at + piece / 8 * kHalfBytes + row * 128 + ((piece % 8 ^ row % 8) << 4),
               from + key * stride + piece * 8, key < kNoBlock);
  }
  copy_commit();
}

// Keys and values in KV blocks of T tokens: each copy moves a group of rows that share a block, a
// lane of one warp each.
struct Pages {
  const int32_t *table;  // of the KV head
  int tokens, group;     // T; rows of a copy: the largest of 64, 32 and 16 that divides T

  // First row, in the pool, of the keys of a token's group; values are T rows on.
  __device__ int row(int token) const {
    return table[token / tokens] * 2 * tokens + token % tokens;
  }
};

constexpr int kPoolRows = 0x7fffff00;  // as the pool's map has it; the row past them all is zeros

__device__ inline void load_pages(MiShared &s, const CUtensorMap &pool, const Pages &p, int t,
                                  int2 start, int row) {
  const int stage = stage_of(t), lane = threadIdx.x, copies = kTileKeys / p.group;
  const auto tile = [&](char *to, uint64_t *full, int at) {
    const uint32_t barrier = shared_address(full),
                   group = shared_address(to) + lane * p.group * 128;
    if (lane == 0) barrier_expect(barrier, kTileBytes);
    __syncwarp();
    if (lane >= copies) return;
    copy_box(group, &pool, barrier, 0, at, 0);
    copy_box(group + kHalfBytes, &pool, barrier, 64, at, 0);
  };
  wait_free(s.empty_k, t);
  if (lane == 0) s.start[stage] = start;
  tile(s.k[stage], s.full_k + stage, row);
  __syncwarp();
  wait_free(s.empty_v, t);
  tile(s.v[stage], s.full_v + stage, row == kPoolRows ? row : row + p.tokens);
  __syncwarp();
}

// The first tile of a walk, where the context ends within a block: what follows in it is not read,
// and becomes zeros. All four warps.
__device__ inline void load_last_page(MiShared &s, const __half *pool, const Pages &p, int2 start,
                                      int total) {
  const int piece = threadIdx.x % 16;
#pragma unroll 1
  for (int row = threadIdx.x / 16; row < kTileKeys; row += 8) {
    const int key = row < kMiBlock ? start.x + row : start.y + row - kMiBlock;
    const bool there = key < total;
    const __half *from = pool + (there ? int64_t(p.row(key)) * kDim : 0) + piece * 8;
    const uint32_t to = piece / 8 * kHalfBytes + row * 128 + ((piece % 8 ^ row % 8) << 4);
    copy_async(shared_address(s.k[0]) + to, from, there);
    copy_async(shared_address(s.v[0]) + to, from + p.tokens * kDim, there);
  }
  if (threadIdx.x == 0) s.start[0] = start;
  copy_commit();
  copy_wait<0>();
  fence_shared_proxy();
  named_sync(1, 128);
  if (threadIdx.x == 0)
    barrier_arrive(shared_address(s.full_k)), barrier_arrive(shared_address(s.full_v));
}

__device__ inline void produce_pages(MiShared &s, const ss_prefill_args &a, const CUtensorMap &pool,
                                     const MiPlan &plan, const Walk &w, int kv_head) {
  const Pages p = {a.table + int64_t(kv_head) * a.table_stride, a.block_tokens,
                   a.block_tokens % 64 == 0   ? 64
                   : a.block_tokens % 32 == 0 ? 32
                                              : 16};
  const int total = a.prefix + a.q_tokens;
  int t = 0;
  if (blocks_of(plan, w, 0).x + kMiBlock > total) {
    load_last_page(s, static_cast<const __half *>(a.pool), p, blocks_of(plan, w, 0), total);
    t = 1;
  }
  if (threadIdx.x >= 32) return;
  const auto row_of = [&](int2 start) {  // where this lane copies from
    const int key = int(threadIdx.x) * p.group;
    const int token = key < kMiBlock ? start.x + key : start.y + key - kMiBlock;
    return key < kTileKeys && token < total ? p.row(token) : kPoolRows;
  };
  __syncwarp();
  int2 next = blocks_of(plan, w, t);
  int row = t < w.tiles() ? row_of(next) : 0;
  for (; t < w.tiles(); t++) {
    const int2 start = next;
    const int at = row;
    if (t + 1 < w.tiles()) next = blocks_of(plan, w, t + 1), row = row_of(next);
    load_pages(s, pool, p, t, start, at);
  }
}

// All four warps of the producer: tile t of columns; the one before is handed over when its copies
// have come, when the copies of this one have been started.
__device__ inline void load_columns(MiShared &s, const ss_prefill_args &p, const MiPlan &plan,
                                    const Walk &w, int kv_head) {
  const __half *k = static_cast<const __half *>(p.k) + kv_head * p.k_head_stride,
               *v = static_cast<const __half *>(p.v) + kv_head * p.v_head_stride;
  for (int t = w.both; t <= w.shared; t++) {
    if (t < w.shared) {
      const int stage = stage_of(t), i = (t - w.both) * kTileKeys + threadIdx.x;
      wait_free(s.empty_k, t);
      s.column[stage][threadIdx.x] = i < plan.columns ? plan.column[i] : kNoBlock;
      if (threadIdx.x == 0) s.start[stage] = make_int2(-1, -1);
      named_sync(1, 128);
      load_rows(s.k[stage], k, p.k_token_stride, s.column[stage]);
      wait_free(s.empty_v, t);
      load_rows(s.v[stage], v, p.v_token_stride, s.column[stage]);
    }
    if (t == w.both) continue;
    if (t < w.shared)
      copy_wait<2>();
    else
      copy_wait<0>();
    fence_shared_proxy();
    named_sync(1, 128);
    if (threadIdx.x == 0) {
      barrier_arrive(shared_address(s.full_k + stage_of(t - 1)));
      barrier_arrive(shared_address(s.full_v + stage_of(t - 1)));
    }
  }
}

template <bool kPaged>
__device__ inline void produce(MiShared &s, const ss_mi_attend_args &a, const CUtensorMap &q,
                               const CUtensorMap &k, const CUtensorMap &v, const MiPlan &plan,
                               const Walk &w, int query0, int head) {
  const int kv_head = head / (a.prefill.heads_q / a.prefill.heads_kv);
  const auto blocks = [&](int from, int to) {
    if (threadIdx.x != 0 || from == to) return;
    int2 next = blocks_of(plan, w, from);
    for (int t = from; t < to; t++) {
      const int2 start = next;
      if (t + 1 < to) next = blocks_of(plan, w, t + 1);
      load_blocks(s, k, v, t, start, kv_head);
    }
  };
  if (threadIdx.x == 0) {
    const uint32_t barrier = shared_address(&s.queries);
    barrier_expect(barrier, 2 * kQueryBytes);
#pragma unroll
    for (int i = 0; i < 4; i++)
      copy_box(shared_address(s.q) + i * (kQueryBytes / 2), &q, barrier, i % 2 * 64,
               query0 + i / 2 * kMiBlock, head);
  }
  if (kPaged) {
    produce_pages(s, a.prefill, k, plan, w, kv_head);
    return;
  }
  blocks(0, w.both);
  if (w.shared > w.both) {
    __syncwarp();
    load_columns(s, a.prefill, plan, w, kv_head);
  }
  blocks(w.shared, w.tiles());
}

}  // namespace ss
