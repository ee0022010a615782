// A consumer of mi_hopper.cu: a warpgroup with 64 queries. A thread has rows r and r + 8 of its
// warp's 16, and of each 8 columns two.
#pragma once

#include "mi_walk.cuh"

namespace ss {

__device__ inline void scores(float (&s)[64], uint32_t q, uint32_t k) {
#pragma unroll
  for (int i = 0; i < kDim / 16; i++)
    wgmma_shared(s, wgmma_operand(q + i / 4 * (kQueryBytes / 2) + i % 4 * 32, 0),
                 wgmma_operand(k + i / 4 * kHalfBytes + i % 4 * 32, 0), i > 0);
}

__device__ inline void weigh_values(float (&o)[64], const uint32_t (&p)[32], uint32_t v) {
#pragma unroll
  for (int i = 0; i < kTileKeys / 16; i++)
    wgmma_registers(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3],
                    wgmma_operand(v + i * 16 * 128, kHalfBytes));
}

struct Rows {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {}, alpha[2] = {};
};

// S becomes P; alpha is the factor for O.
__device__ inline void softmax(float (&s)[64], Rows &r, float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float best = r.top[h];
#pragma unroll
    for (int n = 0; n < 16; n++) best = fmaxf(best, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
    const float ref = best == -INFINITY ? 0 : best * scale_log2;
    r.alpha[h] = exp2_fast(r.top[h] * scale_log2 - ref);
    r.top[h] = best;
    float part = 0;
#pragma unroll
    for (int n = 0; n < 16; n++) {
      float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
      x = exp2_fast(fmaf(x, scale_log2, -ref));
      y = exp2_fast(fmaf(y, scale_log2, -ref));
      part += x + y;
    }
    r.sum[h] = r.sum[h] * r.alpha[h] + part;
  }
}

// Rows find their largest score early: mostly there is nothing to do.
__device__ inline void rescale(float (&o)[64], const Rows &r) {
  if (!__any_sync(~0u, r.alpha[0] != 1 || r.alpha[1] != 1)) return;
#pragma unroll
  for (int i = 0; i < 64; i++) o[i] *= r.alpha[i / 2 % 2];
}

__device__ inline void to_half(uint32_t (&p)[32], const float (&s)[64]) {
#pragma unroll
  for (int i = 0; i < 32; i++) p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Hides what a query does not see. `position` is that of the thread's first row.
__device__ inline void mask(float (&s)[64], const ss_mi_attend_args &a, int2 start,
                            const int32_t *column, int half, int position) {
  const int lane = threadIdx.x % 32;
  if (start.x < 0) {
#pragma unroll
    for (int n = 0; n < 16; n++) {
      const int2 entry = *reinterpret_cast<const int2 *>(column + n * 8 + lane % 4 * 2);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int e = i % 2 ? entry.y : entry.x;
        if ((e >> (30 + half) & 1) || (e & kColumnBits) > position + i / 2 * 8)
          s[4 * n + i] = -INFINITY;
      }
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < 16; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = (n < 8 ? start.x : start.y - 64) + n * 8 + lane % 4 * 2 + i % 2;
      if (!mi_visible(a, key, position + i / 2 * 8)) s[4 * n + i] = -INFINITY;
    }
}

__device__ inline bool needs_mask(const ss_mi_attend_args &a, int2 start, int first) {
  if (start.x < 0 || max(start.x, start.y) + kMiBlock - 1 > first) return true;
  return a.window > 0 && first + kMiBlock - 1 - min(start.x, start.y) >= a.window &&
         max(start.x, start.y) + kMiBlock > a.sink;
}

__device__ inline void consume(MiShared &sh, const ss_mi_attend_args &a, const Walk &w, int query0,
                               int head, int half) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int first =
      a.prefill.prefix + query0 + half * kMiBlock;  // position of the half's first query
  const int position = first + warp * 16 + lane / 4;
  const float scale_log2 = a.prefill.scale * 1.4426950408889634f;
  const uint32_t q = shared_address(sh.q) + half * kQueryBytes;
  const auto arrive = [&](uint64_t *barriers, int t) {
    __syncwarp();
    if (lane == 0) barrier_arrive(shared_address(barriers + stage_of(t)));
  };
  const auto wait = [&](uint64_t *barriers, int t) {
    barrier_wait(shared_address(barriers + stage_of(t)), parity_of(t));
  };
  const auto pass_by = [&](int t) {
    wait(sh.full_k, t), arrive(sh.empty_k, t);
    wait(sh.full_v, t), arrive(sh.empty_v, t);
  };

  float s[64], o[64];
  uint32_t p[32];
  Rows rows;
#pragma unroll
  for (int i = 0; i < 64; i++) o[i] = 0;
  int t = -1;  // the tile whose P V is still to come
  const int own = w.own(half);
  barrier_wait(shared_address(&sh.queries), 0);

  const auto finish_scores = [&](int next) {
    const int2 start = sh.start[stage_of(next)];
    if (needs_mask(a, start, first)) mask(s, a, start, sh.column[stage_of(next)], half, position);
    arrive(sh.empty_k, next);
    softmax(s, rows, scale_log2);
  };

  if (own > 0) {
    const int next = w.place(half, 0);
    for (int i = 0; i < next; i++) pass_by(i);
    wait(sh.full_k, next);
    wgmma_fence();
    scores(s, q, shared_address(sh.k[stage_of(next)]));
    wgmma_commit();
    wgmma_wait<0>();
    hold(s);
    finish_scores(next);
    to_half(p, s);
    t = next;
  }
  for (int i = 1; i < own; i++) {
    const int next = w.place(half, i);
    for (int j = t + 1; j < next; j++) pass_by(j);
    wait(sh.full_k, next);
    hold(s);
    wgmma_fence();
    scores(s, q, shared_address(sh.k[stage_of(next)]));
    wgmma_commit();
    rescale(o, rows);
    wait(sh.full_v, t);
    hold(o);
    wgmma_fence();
    weigh_values(o, p, shared_address(sh.v[stage_of(t)]));
    wgmma_commit();
    wgmma_wait<1>();
    hold(s);
    finish_scores(next);
    wgmma_wait<0>();
    hold(o);
    arrive(sh.empty_v, t);
    to_half(p, s);
    t = next;
  }
  if (own > 0) {
    rescale(o, rows);
    wait(sh.full_v, t);
    hold(o);
    wgmma_fence();
    weigh_values(o, p, shared_address(sh.v[stage_of(t)]));
    wgmma_commit();
    wgmma_wait<0>();
    hold(o);
    arrive(sh.empty_v, t);
  }
  for (int j = t + 1; j < w.tiles(); j++) pass_by(j);

  // Through the warp's own rows of the queries, so that global stores are 16 bytes a lane.
  char *staged = sh.q + half * kQueryBytes;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = rows.sum[h] + __shfl_xor_sync(~0u, rows.sum[h], 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const float inverse = total > 0 ? 1 / total : 0;
    const int row = warp * 16 + h * 8 + lane / 4;
#pragma unroll
    for (int n = 0; n < 16; n++)
      *reinterpret_cast<uint32_t *>(staged + swizzled<kDim>(row, n) + lane % 4 * 4) =
          pack(o[4 * n + 2 * h] * inverse, o[4 * n + 2 * h + 1] * inverse);
  }
  __syncwarp();
  const ss_prefill_args &g = a.prefill;
  __half *out = static_cast<__half *>(g.out) + head * g.out_head_stride;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int row = warp * 16 + i * 2 + lane / 16, piece = lane % 16,
              query = query0 + half * kMiBlock + row;
    if (query < g.q_tokens)
      *reinterpret_cast<uint4 *>(out + query * g.out_token_stride + piece * 8) =
          *reinterpret_cast<const uint4 *>(staged + swizzled<kDim>(row, piece));
  }
}

}  // namespace ss
