// What kernels lose while FlashH2D loads on another stream: a share of their time, or something for
// each kernel. Prints microseconds a kernel, alone and with loads without pause: FlashH2D's
// (4,096 blocks of 16 KiB, 8 CTAs and fewer) and the copy engine's.
//
//   nvcc -O3 -arch=sm_90 -o load_contention cuda/measured/load_contention.cu \
//     -Lcuda/build -lsparseserve -Xlinker -rpath=cuda/build
//   CUDA_MODULE_LOADING=EAGER ./load_contention
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include "../sparseserve.h"

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t failed = (call);                                                 \
    if (failed != cudaSuccess) {                                                 \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(failed));     \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

__global__ void empty() {}

__global__ void compute(int rounds, float *out) {
  float a = threadIdx.x, b = 1.0001f;
  for (int i = 0; i < rounds; i++) a = a * b + 0.5f;
  if (a == 1.25f) *out = a;
}

__global__ void read(const float4 *p, size_t n, float *out) {
  float s = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    float4 v = p[i];
    s += v.x + v.y + v.z + v.w;
  }
  if (s == 1.25f) *out = s;
}

static const int blocks = 4096, block = 16 << 10;
static char *host, *device;
static uint64_t *addresses;
static cudaStream_t victim, loading;
static std::atomic<long> done;

// loads runs loads until told to stop, two at a time in the stream.
static void loads(int ctas, std::atomic<bool> *stop) {
  cudaEvent_t e[2];
  for (auto &x : e) CHECK(cudaEventCreateWithFlags(&x, cudaEventDisableTiming));
  for (long i = 0; !*stop; i++) {
    if (i > 1) {
      CHECK(cudaEventSynchronize(e[i % 2]));
      done++;
    }
    if (ctas < 0) {
      CHECK(cudaMemcpyAsync(device, host, (size_t)blocks * block, cudaMemcpyHostToDevice, loading));
    } else {
      ss_blocks_args a = {};
      a.src = addresses, a.dst = addresses + blocks, a.count = blocks, a.block_bytes = block;
      a.ctas = ctas;
      if (ss_flash_h2d(&a, (ss_stream)loading)) exit(1);
    }
    CHECK(cudaEventRecord(e[i % 2], loading));
  }
  CHECK(cudaStreamSynchronize(loading));
}

template <class F>
static double each(int kernels, F launch) { // median of nine chains, in us a kernel
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  std::vector<float> t;
  for (int r = 0; r < 9; r++) {
    CHECK(cudaEventRecord(a, victim));
    for (int k = 0; k < kernels; k++) launch();
    CHECK(cudaEventRecord(b, victim));
    CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    t.push_back(ms * 1e3 / kernels);
  }
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

int main() {
  float4 *big;
  float *out;
  const size_t bytes = 4ull << 30;
  CHECK(cudaMalloc(&big, bytes));
  CHECK(cudaMemset(big, 0, bytes));
  CHECK(cudaMalloc(&out, 4));
  CHECK(cudaMallocHost(&host, (size_t)blocks * block));
  CHECK(cudaMalloc(&device, (size_t)blocks * block));
  CHECK(cudaMallocHost(&addresses, 2 * blocks * 8));
  for (int i = 0; i < blocks; i++) {
    addresses[i] = (uint64_t)(host + (size_t)i * block);
    addresses[blocks + i] = (uint64_t)(device + (size_t)i * block);
  }
  int least, most;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &most));
  CHECK(cudaStreamCreateWithPriority(&victim, cudaStreamNonBlocking, least));
  CHECK(cudaStreamCreateWithPriority(&loading, cudaStreamNonBlocking, most));
  struct Case {
    const char *name;
    int ctas;
  } with[] = {{"alone", 0}, {"8 CTAs", 8}, {"4 CTAs", 4}, {"2 CTAs", 2}, {"copy engine", -1}};
  printf("%-34s", "us a kernel");
  for (auto &c : with) printf("%14s", c.name);
  printf("\n");
  auto row = [&](const char *name, int kernels, auto launch) {
    printf("%-34s", name);
    for (auto &c : with) {
      std::atomic<bool> stop{false};
      std::thread t;
      if (c.ctas) {
        long before = done;
        t = std::thread(loads, c.ctas, &stop);
        while (done < before + 3) std::this_thread::yield();
      }
      printf("%14.2f", each(kernels, launch));
      stop = true;
      if (t.joinable()) t.join();
    }
    printf("\n");
    CHECK(cudaGetLastError());
  };
  row("empty, 1 CTA", 400, [&] { empty<<<1, 32, 0, victim>>>(); });
  row("empty, 132 CTAs", 400, [&] { empty<<<132, 256, 0, victim>>>(); });
  row("empty, 1,056 CTAs", 400, [&] { empty<<<1056, 256, 0, victim>>>(); });
  row("reads 1 MiB, 132 CTAs", 400, [&] { read<<<132, 256, 0, victim>>>(big, 1 << 16, out); });
  row("reads 16 MiB, 528 CTAs", 400, [&] { read<<<528, 256, 0, victim>>>(big, 1 << 20, out); });
  row("reads 64 MiB, 528 CTAs", 200, [&] { read<<<528, 256, 0, victim>>>(big, 1 << 22, out); });
  row("reads 4 GiB, 528 CTAs", 3, [&] { read<<<528, 256, 0, victim>>>(big, 1 << 28, out); });
  for (int rounds : {1000, 10000, 100000, 1000000}) {
    char name[64];
    snprintf(name, sizeof name, "computes %d rounds, 124 CTAs", rounds);
    row(name, std::max(3, 400000 / std::max(rounds, 1000)),
        [&] { compute<<<124, 256, 0, victim>>>(rounds, out); });
  }
  row("computes 100000 rounds, 1,056 CTAs", 4,
      [&] { compute<<<1056, 256, 0, victim>>>(100000, out); });
  // What else a layer of the live loop puts on its stream.
  cudaEvent_t timed, untimed;
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  row("empty, then an event", 400, [&] {
    empty<<<1, 32, 0, victim>>>();
    CHECK(cudaEventRecord(untimed, victim));
  });
  row("empty, then a timed event", 400, [&] {
    empty<<<1, 32, 0, victim>>>();
    CHECK(cudaEventRecord(timed, victim));
  });
  row("empty, then a wait for an event", 400, [&] {
    empty<<<1, 32, 0, victim>>>();
    CHECK(cudaStreamWaitEvent(victim, timed, 0));
  });
  char *pinned;
  CHECK(cudaMallocHost(&pinned, 1 << 20));
  for (int bytes : {256, 4 << 10, 32 << 10}) {
    char name[64];
    ss_memcpy_args up = {}, down = {};
    up.dst = big, up.src = pinned, up.bytes = bytes;
    down.dst = pinned, down.src = big, down.bytes = bytes;
    snprintf(name, sizeof name, "carries %d bytes up", bytes);
    row(name, 200, [&] { ss_carry(&up, (ss_stream)victim); });
    snprintf(name, sizeof name, "carries %d bytes down", bytes);
    row(name, 200, [&] { ss_carry(&down, (ss_stream)victim); });
  }
  uint64_t *inside;
  CHECK(cudaMalloc(&inside, 2 * 320 * 8));
  for (int n : {8, 40, 320}) {
    std::vector<uint64_t> places(2 * n);
    for (int i = 0; i < n; i++) {
      places[i] = (uint64_t)big + (size_t)((i * 7919) % 65536) * block;
      places[n + i] = (uint64_t)big + (1ull << 30) + (size_t)i * block;
    }
    CHECK(cudaMemcpy(inside, places.data(), 2 * n * 8, cudaMemcpyHostToDevice));
    ss_blocks_args a = {};
    a.src = inside, a.dst = inside + n, a.count = n, a.block_bytes = block;
    a.ctas = std::min(n, 264);
    char name[64];
    snprintf(name, sizeof name, "copies %d blocks within HBM", n);
    row(name, 200, [&] { ss_gpu_scatter(&a, (ss_stream)victim); });
  }
}
