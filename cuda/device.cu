// The GPU: selection, facts, memory and events.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common.cuh"

namespace ss {

static int attribute(int *out, cudaDeviceAttr which, int device) {
  return check(cudaDeviceGetAttribute(out, which, device), "cudaDeviceGetAttribute");
}

int limits(Limits *out) {
  static std::mutex lock;
  static std::map<int, Limits> known;
  int device = 0;
  SS_CUDA(cudaGetDevice(&device));
  std::lock_guard<std::mutex> guard(lock);
  auto it = known.find(device);
  if (it != known.end()) {
    *out = it->second;
    return SS_OK;
  }
  Limits found;
  int l2 = 0, major = 0, minor = 0;
  SS_TRY(attribute(&found.sm_count, cudaDevAttrMultiProcessorCount, device));
  SS_TRY(attribute(&found.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  SS_TRY(attribute(&found.shared_sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  SS_TRY(attribute(&l2, cudaDevAttrL2CacheSize, device));
  SS_TRY(attribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  SS_TRY(attribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  found.l2_bytes = size_t(l2);
  found.capability = 10 * major + minor;
  known[device] = found;
  *out = found;
  return SS_OK;
}

// How each pinned allocation is to be freed.
struct HostBlock {
  int64_t bytes;
  int kind;
};
static std::mutex host_lock;
static std::map<void *, HostBlock> host_blocks;

// Writes to every page, so that the kernel gives it: zeroing 2 MiB pages is most of the work of a
// large pool, and threads share it.
static void touch_pages(char *start, int64_t bytes, int64_t page) {
  const int64_t pages = bytes / page;
  int64_t threads = std::thread::hardware_concurrency();
  if (threads > pages / 64) threads = pages / 64;
  if (threads < 1) threads = 1;
  std::vector<std::thread> others;
  const auto touch = [=](int64_t first) {
    for (int64_t i = first; i < pages; i += threads)
      static_cast<volatile char *>(start)[i * page] = 0;
  };
  for (int64_t t = 1; t < threads; t++) others.emplace_back(touch, t);
  touch(0);
  for (std::thread &thread : others) thread.join();
}

static int alloc_huge(void **out, int64_t bytes) {
  const int64_t page = 2 << 20;
  bytes = ceil_div64(bytes, page) * page;
  // One page more than asked for, so that the start can be moved to a 2 MiB boundary; the rest is
  // unmapped at once.
  char *raw = static_cast<char *>(mmap(nullptr, size_t(bytes + page), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (raw == MAP_FAILED)
    return fail(SS_ERR_MEMORY, "mmap of %lld bytes failed", static_cast<long long>(bytes));
  char *start =
      reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(raw) + page - 1) / page * page);
  if (start > raw) munmap(raw, size_t(start - raw));
  const int64_t tail = page - (start - raw);
  if (tail > 0) munmap(start + bytes, size_t(tail));
  madvise(start, size_t(bytes), MADV_HUGEPAGE);  // advice: the pool also works on small pages
  touch_pages(start, bytes, page);
  const int code = check(
      cudaHostRegister(start, size_t(bytes), cudaHostRegisterPortable | cudaHostRegisterMapped),
      "cudaHostRegister");
  if (code != SS_OK) {
    munmap(start, size_t(bytes));
    return code;
  }
  *out = start;
  std::lock_guard<std::mutex> guard(host_lock);
  host_blocks[start] = {bytes, SS_HOST_HUGE_PAGES};
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_init(int32_t device) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
      return ss::fail(SS_ERR_NO_DRIVER,
                      "the NVIDIA driver serves CUDA %d.%d, the library was built with CUDA %d.%d: "
                      "update the driver or rebuild",
                      driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                      CUDART_VERSION % 1000 / 10);
    return ss::fail(SS_ERR_NO_DRIVER, "no NVIDIA driver is loaded on this machine");
  }
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0))
    return ss::fail(SS_ERR_NO_DEVICE, "the NVIDIA driver finds no GPU");
  SS_CUDA(result);
  if (device < 0 || device >= count)
    return ss::fail(SS_ERR_NO_DEVICE, "GPU %d asked for, %d present", device, count);
  SS_CUDA(cudaSetDevice(device));
  SS_CUDA(cudaFree(nullptr));  // creates the context now, so that no later call pays for it
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  if (found.capability < 80)
    return ss::fail(SS_ERR_UNSUPPORTED, "the GPU has compute capability %d.%d, 8.0 is needed",
                    found.capability / 10, found.capability % 10);
  return SS_OK;
}

extern "C" int ss_device(ss_device_info *out) {
  SS_NEED(out != nullptr);
  std::memset(out, 0, sizeof *out);
  int device = 0;
  SS_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties;
  SS_CUDA(cudaGetDeviceProperties(&properties, device));
  snprintf(out->name, sizeof out->name, "%.127s", properties.name);
  size_t free_bytes = 0, total = 0;
  SS_CUDA(cudaMemGetInfo(&free_bytes, &total));
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  out->memory_bytes = int64_t(total);
  out->memory_busy_bytes = int64_t(total - free_bytes);
  out->l2_bytes = int64_t(found.l2_bytes);
  out->sm_count = found.sm_count;
  out->capability = found.capability;
  out->shared_bytes = found.shared_bytes;
  SS_CUDA(cudaDriverGetVersion(&out->driver_version));
  out->toolkit_version = CUDART_VERSION;
  return ss::attribute(&out->copy_engines, cudaDevAttrAsyncEngineCount, device);
}

extern "C" int ss_device_alloc(void **out, int64_t bytes) {
  SS_NEED(out != nullptr);
  SS_NEED(bytes > 0);
  return ss::check(cudaMalloc(out, size_t(bytes)), "cudaMalloc");
}

extern "C" int ss_device_free(void *p) { return ss::check(cudaFree(p), "cudaFree"); }

extern "C" int ss_host_alloc(void **out, int64_t bytes, int32_t kind) {
  SS_NEED(out != nullptr);
  SS_NEED(bytes > 0);
  SS_NEED(kind == SS_HOST_PAGES || kind == SS_HOST_HUGE_PAGES);
  if (kind == SS_HOST_HUGE_PAGES) return ss::alloc_huge(out, bytes);
  SS_CUDA(cudaHostAlloc(out, size_t(bytes), cudaHostAllocPortable | cudaHostAllocMapped));
  std::lock_guard<std::mutex> guard(ss::host_lock);
  ss::host_blocks[*out] = {bytes, kind};
  return SS_OK;
}

extern "C" int ss_host_free(void *p) {
  if (p == nullptr) return SS_OK;
  ss::HostBlock block;
  {
    std::lock_guard<std::mutex> guard(ss::host_lock);
    auto it = ss::host_blocks.find(p);
    if (it == ss::host_blocks.end())
      return ss::fail(SS_ERR_ARGUMENT, "ss_host_free: %p is not from ss_host_alloc", p);
    block = it->second;
    ss::host_blocks.erase(it);
  }
  if (block.kind == SS_HOST_PAGES) return ss::check(cudaFreeHost(p), "cudaFreeHost");
  const int code = ss::check(cudaHostUnregister(p), "cudaHostUnregister");
  munmap(p, size_t(block.bytes));
  return code;
}

extern "C" int ss_device_sync(void) {
  return ss::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

extern "C" int ss_event_create(ss_event *out, int32_t timed) {
  SS_NEED(out != nullptr);
  cudaEvent_t event = nullptr;
  SS_CUDA(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  *out = event;
  return SS_OK;
}

extern "C" int ss_event_destroy(ss_event event) {
  return ss::check(cudaEventDestroy(static_cast<cudaEvent_t>(event)), "cudaEventDestroy");
}
extern "C" int ss_event_record(ss_event event, ss_stream stream) {
  return ss::check(cudaEventRecord(static_cast<cudaEvent_t>(event), ss::stream_of(stream)),
                   "cudaEventRecord");
}
extern "C" int ss_event_sync(ss_event event) {
  return ss::check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
}

extern "C" int ss_event_ms(ss_event from, ss_event to, float *ms) {
  SS_NEED(ms != nullptr);
  return ss::check(
      cudaEventElapsedTime(ms, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to)),
      "cudaEventElapsedTime");
}

extern "C" int ss_memcpy(const ss_memcpy_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->bytes >= 0);
  return ss::check(cudaMemcpyAsync(args->dst, args->src, size_t(args->bytes), cudaMemcpyDefault,
                                   ss::stream_of(stream)),
                   "cudaMemcpyAsync");
}

extern "C" int ss_memset(const ss_memset_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->bytes >= 0);
  return ss::check(
      cudaMemsetAsync(args->dst, args->value, size_t(args->bytes), ss::stream_of(stream)),
      "cudaMemsetAsync");
}
