// Tensor-core and asynchronous-copy instructions of sm_80, one wrapper each.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace ss {

// d += a b: a 16x16 fp16 row-major fragment, b 16x8 fp16 column-major fragment, d 16x8 fp32.
// With lane = 4 g + t: d[0], d[1] are row g, columns 2t, 2t + 1; d[2], d[3] row g + 8.
__device__ inline void mma16816(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline uint32_t shared_address(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}

// Four 8x8 fp16 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ inline void load_matrix_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// 16 bytes from global to shared memory; writes zeros when !valid (nothing is read then).
__device__ inline void copy_async(uint32_t shared, const void *global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}

// 4 bytes, in the same groups.
__device__ inline void copy_async_word(uint32_t shared, const void *global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(global) : "memory");
}

__device__ inline uint32_t load_shared_word(uint32_t address) {
  uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}

__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most N of this thread's groups are still on their way.
template <int N>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ inline uint32_t pack(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&h);
}

// Byte offset of 16-byte piece `piece` of row `row` in a tile of rows of D halves. The pieces of a
// row are permuted by the row's number, so that the eight rows that ldmatrix reads together are in
// different banks.
template <int D>
__device__ inline uint32_t swizzled(int row, int piece) {
  return uint32_t(row * D * 2 + ((piece ^ (row & 7)) << 4));
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ss
