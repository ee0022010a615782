// Thread block clusters (sm_90): CTAs that share a unit, and write to each other's shared memory.
// Each wrapper is one instruction; on older GPUs they do nothing, and the kernels that use them are
// not launched.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kClusterMax = 8;  // CTAs; every GPU with clusters supports this size

__device__ inline int cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return int(rank);
}

__device__ inline int cluster_ctas() {
  uint32_t count = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
#endif
  return int(count);
}

// A barrier of all threads of the cluster in two halves; what was written before the first is seen
// after the second (release and acquire are the defaults; CUDA 11.8 does not parse the words).
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
}

__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// Where CTA `rank` has what is at `p` in this CTA's shared memory.
__device__ inline uint32_t cluster_address(const void *p, int rank) {
  uint32_t at = uint32_t(__cvta_generic_to_shared(p));
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(at), "r"(rank));
#endif
  return at;
}

__device__ inline void cluster_store(uint32_t at, float x) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
#endif
}

// CTAs per cluster such that `units` clusters have at most `slots` CTAs; 1 where that is one a unit
// or the GPU has no clusters.
inline int cluster_size(const Limits &found, int64_t units, int64_t slots) {
  int ctas = found.capability >= 90 ? kClusterMax : 1;
  while (ctas > 1 && units * ctas > slots) ctas /= 2;
  return ctas;
}

inline cudaLaunchAttribute cluster_attribute(int ctas) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = unsigned(ctas);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}

// The same by the driver's occupancy of this kernel: GPU processing clusters have SMs to spare that
// no cluster of 8 fills, so 32 clusters of 8 CTAs may need two waves where 256 CTAs need one. It is
// asked once per kernel and GPU; `shared` must always be the same.
template <auto kKernel>
int cluster_fitting(const Limits &found, int64_t units, int threads, size_t shared, int *ctas) {
  constexpr int kDevices = 64;
  // clusters at once, plus one; 0: not asked yet
  static std::atomic<int> active[kDevices][kClusterMax + 1];
  *ctas = 1;
  if (found.capability < 90) return SS_OK;
  int device = 0;
  SS_CUDA(cudaGetDevice(&device));
  for (int size = kClusterMax; size > 1; size /= 2) {
    int fit = device < kDevices ? active[device][size].load() - 1 : -1;
    if (fit < 0) {
      SS_TRY(allow_shared<kKernel>(int(shared)));
      cudaLaunchConfig_t config = {};
      cudaLaunchAttribute attribute = cluster_attribute(size);
      config.gridDim = dim3(unsigned(size));
      config.blockDim = dim3(unsigned(threads));
      config.dynamicSmemBytes = shared;
      config.attrs = &attribute;
      config.numAttrs = 1;
      SS_CUDA(cudaOccupancyMaxActiveClusters(&fit, kKernel, &config));
      if (device < kDevices) active[device][size].store(fit + 1);
    }
    if (fit >= units) {
      *ctas = size;
      return SS_OK;
    }
  }
  return SS_OK;
}

template <class Kernel, class... Args>
int launch_cluster(Kernel *kernel, dim3 grid, int threads, size_t shared, int ctas,
                   cudaStream_t stream, const Args &...args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attribute = cluster_attribute(ctas);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return check(cudaLaunchKernelEx(&config, kernel, args...), "cudaLaunchKernelEx");
}

}  // namespace ss
