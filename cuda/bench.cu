// Timing loops, inside the library so that a caller's language adds nothing to a sample.
//
// A sample on the event clock is: L2 flush (if asked for), gate, start event, the calls, stop
// event. The gate is a kernel that spins for some tens of microseconds: meanwhile the host enqueues
// what follows, so the GPU time between the events has no submission overhead in it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "common.cuh"

namespace ss {

constexpr long long kGateNanoseconds = 40000;

__global__ void gate_kernel(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Fills the L2 with clean lines of another buffer. After a memset they would be dirty, and charge
// the next kernel with writing them back.
__global__ void flush_kernel(const uint4 *buffer, size_t count, int *never) {
  uint32_t mix = 0;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    const uint4 v = buffer[i];
    mix |= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (mix != 0) *never = 1;  // the buffer is zero: this only keeps the loads
}

// Call makes an operation callable with arguments of any type.
template <auto kFunction>
struct Call;
template <typename Args, int (*kFunction)(const Args *, ss_stream)>
struct Call<kFunction> {
  static int run(const void *args, ss_stream stream) {
    return kFunction(static_cast<const Args *>(args), stream);
  }
};

// All operations, in the order of the SS_OP_ constants.
using Operation = int (*)(const void *, ss_stream);
static const Operation operations[] = {
    Call<ss_empty>::run, Call<ss_memcpy>::run, Call<ss_memset>::run,
    Call<ss_fill>::run, Call<ss_flash_h2d>::run, Call<ss_gpu_scatter>::run,
    Call<ss_memcpy_blocks>::run, Call<ss_flash_d2h>::run,
    Call<ss_decode>::run, Call<ss_psa>::run,
    Call<ss_prefill>::run, Call<ss_digest>::run, Call<ss_scores>::run,
    Call<ss_topk>::run, Call<ss_select>::run, Call<ss_linear>::run,
    Call<ss_embed>::run, Call<ss_rmsnorm>::run, Call<ss_rope>::run,
    Call<ss_silu_mul>::run, Call<ss_argmax>::run, Call<ss_lookup>::run,
    Call<ss_table>::run, Call<ss_kv_write>::run, Call<ss_mi_attend>::run,
    Call<ss_mi_pool>::run, Call<ss_mi_blocks>::run, Call<ss_mi_estimate>::run,
    Call<ss_mi_topk>::run, Call<ss_mi_lines>::run, Call<ss_mi_gather>::run,
    Call<ss_swap_in>::run, Call<ss_head_linear>::run, Call<ss_rotate>::run,
    Call<ss_latent_write>::run, Call<ss_index_scores>::run, Call<ss_latent_attend>::run,
};
static_assert(sizeof operations / sizeof *operations == SS_OP_COUNT, "one function an SS_OP_");

int run_calls(const ss_call *calls, int n, cudaStream_t stream) {
  for (int i = 0; i < n; i++) {
    if (calls[i].op < 0 || calls[i].op >= SS_OP_COUNT)
      return fail(SS_ERR_ARGUMENT, "no operation %d", calls[i].op);
    SS_TRY(operations[calls[i].op](calls[i].args, stream));
  }
  return SS_OK;
}

// What a bench holds while it runs; freed on every return.
struct Bench {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;
  uint4 *flush = nullptr;
  size_t flush_bytes = 0;
  int sm_count = 0;

  ~Bench() {
    if (start != nullptr) cudaEventDestroy(start);
    if (stop != nullptr) cudaEventDestroy(stop);
    if (stream != nullptr) drop_stream(stream);
    if (flush != nullptr) cudaFree(flush);
  }
};

using Clock = std::chrono::steady_clock;

static float ms_since(Clock::time_point from) {
  return std::chrono::duration<float, std::milli>(Clock::now() - from).count();
}

static int one_sample(const ss_bench_args &a, const Bench &b, float *ms) {
  if (b.flush != nullptr) {
    flush_kernel<<<b.sm_count * 4, 512, 0, b.stream>>>(b.flush, b.flush_bytes / sizeof(uint4),
                                                       reinterpret_cast<int *>(b.flush));
    SS_CUDA(cudaGetLastError());
  }
  if (a.clock == SS_CLOCK_EVENTS) {
    gate_kernel<<<1, 1, 0, b.stream>>>(kGateNanoseconds);
    SS_CUDA(cudaGetLastError());
    SS_CUDA(cudaEventRecord(b.start, b.stream));
    SS_TRY(run_calls(a.calls, a.n_calls, b.stream));
    SS_CUDA(cudaEventRecord(b.stop, b.stream));
    SS_CUDA(cudaEventSynchronize(b.stop));
    return check(cudaEventElapsedTime(ms, b.start, b.stop), "cudaEventElapsedTime");
  }
  SS_CUDA(cudaStreamSynchronize(b.stream));
  const auto from = Clock::now();
  SS_TRY(run_calls(a.calls, a.n_calls, b.stream));
  if (a.clock == SS_CLOCK_SUBMIT) *ms = ms_since(from);
  SS_CUDA(cudaStreamSynchronize(b.stream));
  if (a.clock == SS_CLOCK_WALL) *ms = ms_since(from);
  return SS_OK;
}

static int check_bench(const ss_bench_args *a) {
  SS_NEED(a != nullptr && a->calls != nullptr && a->samples != nullptr);
  SS_NEED(a->n_calls > 0 && a->warmup >= 0 && a->repeats > 0);
  SS_NEED(a->clock >= SS_CLOCK_EVENTS && a->clock <= SS_CLOCK_SUBMIT);
  return SS_OK;
}

// The second thread of ss_bench_overlapped and its result.
struct Overlap {
  const ss_call *calls;
  int n;
  int device;
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0};
  std::atomic<int> code{SS_OK};
  double total_ms = 0;
  char text[512] = "";

  int loop() {
    SS_CUDA(cudaSetDevice(device));
    Bench b;
    // a server's loads have the priority of compute, its saves have not
    SS_TRY(take_stream(&b.stream, calls[0].op == SS_OP_FLASH_H2D));
    while (!stop.load()) {
      const auto from = Clock::now();
      SS_TRY(run_calls(calls, n, b.stream));
      SS_CUDA(cudaStreamSynchronize(b.stream));
      total_ms += ms_since(from);
      runs++;
    }
    return SS_OK;
  }

  void run() {
    const int result = loop();
    if (result == SS_OK) return;
    snprintf(text, sizeof text, "%s", ss_last_error());
    code = result;
  }
};

}  // namespace ss

extern "C" int ss_bench(const ss_bench_args *args) {
  SS_TRY(ss::check_bench(args));
  ss::Bench bench;
  SS_TRY(ss::take_stream(&bench.stream, true));  // as a server computes
  SS_CUDA(cudaEventCreate(&bench.start));
  SS_CUDA(cudaEventCreate(&bench.stop));
  if (args->flush) {
    ss::Limits found;
    SS_TRY(ss::limits(&found));
    bench.sm_count = found.sm_count;
    bench.flush_bytes = 2 * found.l2_bytes;
    SS_CUDA(cudaMalloc(&bench.flush, bench.flush_bytes));
    SS_CUDA(cudaMemsetAsync(bench.flush, 0, bench.flush_bytes, bench.stream));
  }
  float ignored = 0;
  for (int i = 0; i < args->warmup; i++) SS_TRY(ss::one_sample(*args, bench, &ignored));
  for (int i = 0; i < args->repeats; i++) SS_TRY(ss::one_sample(*args, bench, &args->samples[i]));
  return SS_OK;
}

extern "C" int ss_bench_overlapped(const ss_bench_args *args, const ss_call *calls, int32_t n_calls,
                                   float *mean_ms, int32_t *runs) {
  SS_TRY(ss::check_bench(args));
  SS_NEED(calls != nullptr && n_calls > 0 && mean_ms != nullptr && runs != nullptr);
  ss::Overlap other{calls, n_calls, 0};
  SS_CUDA(cudaGetDevice(&other.device));
  std::thread thread([&other] { other.run(); });
  while (other.runs.load() == 0 && other.code.load() == SS_OK) std::this_thread::yield();
  const int code = ss_bench(args);
  other.stop = true;
  thread.join();
  *runs = other.runs.load();
  *mean_ms = *runs > 0 ? float(other.total_ms / *runs) : 0;
  if (code != SS_OK) return code;
  if (other.code.load() != SS_OK) return ss::fail(other.code.load(), "overlapped: %s", other.text);
  return SS_OK;
}
