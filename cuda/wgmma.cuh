// Hopper's own instructions, one wrapper each: warpgroup matrix products (wgmma), the bulk tensor
// copy engine, and the barriers in shared memory that both complete on. Only code for sm_90a may
// call them.
#pragma once

#include "mma.cuh"

namespace ss {

// ---- barriers in shared memory ----
// A phase ends when `count` arrivals were made and all bytes that were expected have come. Waiting
// for phase p of a barrier is waiting for parity p & 1.

__device__ inline void barrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Barriers that were initialised are seen by the copy engine.
__device__ inline void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and expects n more bytes of the copy engine.
__device__ inline void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ inline void barrier_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra passed;\n"
      "bra again;\n"
      "passed:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// A named barrier of the CTA for n threads; 0 is __syncthreads.
__device__ inline void named_sync(int name, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// What this thread stored to shared memory is seen by wgmma and the copy engine.
__device__ inline void fence_shared_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- the copy engine ----

// A box of a tensor at coordinates (x, y, z), innermost first, to shared memory. Outside of the
// tensor it has zeros; they count as bytes.
__device__ inline void copy_box(uint32_t to, const void *map, uint32_t barrier, int x, int y,
                                int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ inline void prefetch_map(const void *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// ---- registers ----

template <int N>
__device__ inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// ---- wgmma ----

// Operands in shared memory are in rows of 128 bytes whose 16-byte pieces are permuted by the row's
// number modulo 8 (the copy engine's 128-byte swizzle), eight rows to 1024 bytes. `far` is the
// distance of the next 64 columns, for an operand whose rows run along the product's sum.
__device__ inline uint64_t wgmma_operand(uint32_t address, int far) {
  return uint64_t((address & 0x3ffff) >> 4) | uint64_t(far >> 4) << 16 | uint64_t(1024 >> 4) << 32 |
         uint64_t(1) << 62;
}

// Registers of products to come are not touched by what was before.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most N of the committed groups are unfinished.
template <int N>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler from moving accesses to registers that a product uses.
template <int N>
__device__ inline void hold(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(r[i])::"memory");
}

#define SS_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SS_SIXTEEN(i) SS_FOUR(i), SS_FOUR(i + 4), SS_FOUR(i + 8), SS_FOUR(i + 12)
#define SS_ACCUMULATORS SS_SIXTEEN(0), SS_SIXTEEN(16), SS_SIXTEEN(32), SS_SIXTEEN(48)

// d (64x128) = a b^T, or d += a b^T with `add`: a [64][16] and b [128][16] in shared memory.
__device__ inline void wgmma_shared(float (&d)[64], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n"
      "}"
      : SS_ACCUMULATORS
      : "l"(a), "l"(b), "r"(add));
}

// d (64x128) += a b: a in registers, b [16][128] in shared memory.
__device__ inline void wgmma_registers(float (&d)[64], uint32_t a0, uint32_t a1, uint32_t a2,
                                       uint32_t a3, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
      "}"
      : SS_ACCUMULATORS
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}

#undef SS_FOUR
#undef SS_SIXTEEN
#undef SS_ACCUMULATORS

}  // namespace ss
