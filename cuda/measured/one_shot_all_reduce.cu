// Times a one-shot all-reduce of fp16 between two GPUs of this host: each reads the other's input
// over NVLink and sums, one kernel with a barrier of the two GPUs at each end. Engines have it for
// small messages (vLLM's custom all-reduce: up to 8 MiB, one stage between two GPUs).
//
//     nvcc -std=c++17 -O3 -arch=sm_90 cuda/measured/one_shot_all_reduce.cu -o one_shot
//     ./one_shot
//
// Each time is the median over replays of CUDA graphs of 50 all-reduces in a row, one graph a GPU;
// the sums are checked first, on other inputs than zeros.
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                                   \
    do {                                                                             \
        cudaError_t e = (call);                                                      \
        if (e != cudaSuccess) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

constexpr int kBlocks = 36, kThreads = 512, kInner = 50, kSamples = 15;

// Flags that the other GPU raises, one for each block and end of the kernel.
struct Flags {
    unsigned raised[2][kBlocks];
};

__device__ void barrier(unsigned* theirs, unsigned* mine, unsigned value) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(value) : "memory");
        unsigned seen;
        do {
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
        } while ((int)(seen - value) < 0);
    }
    __syncthreads();
}

// count[blockIdx.x] is how often this block has run before.
__global__ void __launch_bounds__(kThreads) all_reduce(
    const uint4* mine, const uint4* theirs, uint4* out, int packs, Flags* my_flags,
    Flags* their_flags, unsigned* count) {
    const unsigned turn = count[blockIdx.x] + 1;
    barrier(&their_flags->raised[0][blockIdx.x], &my_flags->raised[0][blockIdx.x], turn);
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < packs; i += gridDim.x * kThreads) {
        uint4 a = mine[i], b = theirs[i];
        __half2 *x = reinterpret_cast<__half2*>(&a), *y = reinterpret_cast<__half2*>(&b);
        for (int k = 0; k < 4; k++) x[k] = __hadd2(x[k], y[k]);
        out[i] = a;
    }
    barrier(&their_flags->raised[1][blockIdx.x], &my_flags->raised[1][blockIdx.x], turn);
    if (threadIdx.x == 0) count[blockIdx.x] = turn;
}

int main() {
    int gpus = 0;
    MUST(cudaGetDeviceCount(&gpus));
    if (gpus < 2) {
        fprintf(stderr, "needs two GPUs, found %d\n", gpus);
        return 1;
    }
    const size_t most = 16 << 20;
    uint4 *in[2], *out[2];
    Flags* flags[2];
    unsigned* count[2];
    cudaStream_t stream[2];
    std::vector<__half> host(most / 2);
    for (int d = 0; d < 2; d++) {
        MUST(cudaSetDevice(d));
        MUST(cudaDeviceEnablePeerAccess(1 - d, 0));
        MUST(cudaMalloc(&in[d], most));
        MUST(cudaMalloc(&out[d], most));
        MUST(cudaMalloc(&flags[d], sizeof(Flags)));
        MUST(cudaMalloc(&count[d], kBlocks * sizeof(unsigned)));
        MUST(cudaMemset(flags[d], 0, sizeof(Flags)));
        MUST(cudaMemset(count[d], 0, kBlocks * sizeof(unsigned)));
        MUST(cudaMemset(out[d], 0xff, most));
        for (size_t i = 0; i < host.size(); i++)
            host[i] = __float2half(float((i * 7 + d * 3) % 101) - 50);
        MUST(cudaMemcpy(in[d], host.data(), most, cudaMemcpyHostToDevice));
        MUST(cudaStreamCreate(&stream[d]));
    }
    cudaDeviceProp prop;
    MUST(cudaGetDeviceProperties(&prop, 0));
    printf("%s x 2, one-shot all-reduce of fp16, %d blocks of %d threads\nbytes us GB/s\n",
           prop.name, kBlocks, kThreads);
    for (size_t bytes = 4096; bytes <= most; bytes *= 2) {
        const int packs = int(bytes / 16);
        const int blocks = std::min(kBlocks, (packs + kThreads - 1) / kThreads);
        cudaGraphExec_t run[2];
        for (int d = 0; d < 2; d++) {
            MUST(cudaSetDevice(d));
            cudaGraph_t graph;
            MUST(cudaStreamBeginCapture(stream[d], cudaStreamCaptureModeThreadLocal));
            for (int i = 0; i < kInner; i++)
                all_reduce<<<blocks, kThreads, 0, stream[d]>>>(
                    in[d], in[1 - d], out[d], packs, flags[d], flags[1 - d], count[d]);
            MUST(cudaStreamEndCapture(stream[d], &graph));
            MUST(cudaGraphInstantiate(&run[d], graph, 0));
        }
        std::vector<float> times;
        cudaEvent_t from, to;
        MUST(cudaSetDevice(0));
        MUST(cudaEventCreate(&from));
        MUST(cudaEventCreate(&to));
        for (int s = 0; s < kSamples + 3; s++) {
            MUST(cudaSetDevice(1));
            MUST(cudaGraphLaunch(run[1], stream[1]));
            MUST(cudaSetDevice(0));
            MUST(cudaEventRecord(from, stream[0]));
            MUST(cudaGraphLaunch(run[0], stream[0]));
            MUST(cudaEventRecord(to, stream[0]));
            for (int d = 0; d < 2; d++) {
                MUST(cudaSetDevice(d));
                MUST(cudaStreamSynchronize(stream[d]));
            }
            float ms = 0;
            MUST(cudaEventElapsedTime(&ms, from, to));
            if (s >= 3) times.push_back(ms / kInner);
        }
        for (int d = 0; d < 2; d++) {
            MUST(cudaMemcpy(host.data(), out[d], bytes, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < bytes / 2; i++) {
                const float want = float((i * 7) % 101) - 50 + float((i * 7 + 3) % 101) - 50;
                if (__half2float(host[i]) != want) {
                    fprintf(stderr, "GPU %d, element %zu: %g, want %g\n", d, i,
                            __half2float(host[i]), want);
                    return 1;
                }
            }
        }
        std::sort(times.begin(), times.end());
        const float us = times[times.size() / 2] * 1e3f;
        printf("%zu %.2f %.1f\n", bytes, us, bytes / us * 1e-3);
    }
}
