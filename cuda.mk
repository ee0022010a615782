# CUDA targets. Included by the main Makefile; also works alone: make -f cuda.mk cuda
#
#   make cuda        builds cuda/build/libsparseserve.so; needs nvcc, no GPU
#   make gpu-test    checks every kernel, and the live device, against the reference on this
#                    machine's GPU
#   make gpu-pack    the test programs in one file, for a GPU machine without Go
#   make gpu-check   build, checks, quick calibration and live runs of each kind: cuda/check.sh
#
# CUDA_ARCHS narrows the build while iterating: make cuda CUDA_ARCHS=90

NVCC ?= nvcc
GO ?= go
CUDA_ARCHS ?= 80 90
CUDA_OUT ?= out

CUDA_BUILD ?= cuda/build
CUDA_DEFINES ?=
CUDA_LIB := $(CUDA_BUILD)/libsparseserve.so
CUDA_SOURCES := $(wildcard cuda/*.cu)
CUDA_OBJECTS := $(CUDA_SOURCES:cuda/%.cu=$(CUDA_BUILD)/%.o)
# Machine code for each architecture, and PTX of the newest for GPUs that come later.
CUDA_CODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
# Hopper's own instructions need a target of their own, and nvcc 12.
HOPPER := $(if $(filter 90,$(CUDA_ARCHS)),$(shell $(NVCC) --version 2>/dev/null | \
  sed -n 's/.*release \([0-9]*\)\..*/\1/p' | awk '$$1 >= 12'))
NVCCFLAGS ?= -std=c++17 -O3 -lineinfo -Xcompiler -fPIC,-fvisibility=hidden,-Wall

.PHONY: cuda gpu-test gpu-check cuda-clean

cuda: $(CUDA_LIB)

$(CUDA_LIB): $(CUDA_OBJECTS)
	$(NVCC) -shared -cudart static -o $@ $^ -Xlinker --no-undefined,-ldl,-lpthread,-lrt

$(CUDA_BUILD)/%.o: cuda/%.cu cuda.mk
	@command -v $(NVCC) >/dev/null || { \
	  echo "make cuda: $(NVCC) is not on the PATH; install the CUDA toolkit" \
	    "(Debian: nvidia-cuda-toolkit, non-free)" >&2; exit 1; }
	@mkdir -p $(CUDA_BUILD)
	$(NVCC) $(NVCCFLAGS) $(CUDA_DEFINES) $(CUDA_CODE) -MMD -MF $(@:.o=.d) -c $< -o $@

# The headers that each object includes, as the compiler has written them down.
-include $(CUDA_OBJECTS:.o=.d)

ifneq ($(HOPPER),)
$(CUDA_BUILD)/mi_hopper.o: CUDA_CODE := -gencode arch=compute_90a,code=sm_90a
$(CUDA_BUILD)/mi_hopper.o: override CUDA_DEFINES += -DSS_HOPPER
endif

# Static programs: they run on a GPU machine without Go. Where Go is missing, those built elsewhere
# are used.
GPU_PROGRAMS := gpu.test attention.test live.test sparseserve

.PHONY: gpu-programs
gpu-programs:
	@mkdir -p $(CUDA_BUILD)
	@if command -v $(GO) >/dev/null; then \
	  export CGO_ENABLED=0; \
	  $(GO) test -c -tags gpu -ldflags=-s -o $(CUDA_BUILD)/gpu.test ./cuda && \
	  $(GO) test -c -tags gpu -ldflags=-s -o $(CUDA_BUILD)/attention.test ./cuda/emulator && \
	  $(GO) test -c -tags gpu -ldflags=-s -o $(CUDA_BUILD)/live.test ./cuda/live && \
	  $(GO) build -trimpath -ldflags=-s -o $(CUDA_BUILD)/sparseserve .; \
	else \
	  for p in $(GPU_PROGRAMS); do \
	    [ -x $(CUDA_BUILD)/$$p ] || { \
	      echo "no go on the PATH and no $$p in $(CUDA_BUILD): build it elsewhere with" \
	        "'make gpu-programs'" >&2; exit 1; }; \
	  done; \
	fi

# The programs in one file, to be carried to a GPU machine that has nvcc and no Go: a fifth of their
# size, since they share much code.
.PHONY: gpu-pack
gpu-pack: gpu-programs
	XZ_OPT=-9 tar -C $(CUDA_BUILD) -cJf $(CUDA_BUILD)/programs.tmp $(GPU_PROGRAMS)
	mv $(CUDA_BUILD)/programs.tmp $(CUDA_BUILD)/programs.tar.xz

gpu-test: cuda gpu-programs
	SPARSESERVE_CUDA_LIB=$(abspath $(CUDA_LIB)) $(CUDA_BUILD)/gpu.test -test.run '^TestGPU' -test.v \
	  -test.timeout 10m
	SPARSESERVE_CUDA_LIB=$(abspath $(CUDA_LIB)) $(CUDA_BUILD)/attention.test -test.run '^TestGPU' \
	  -test.v -test.timeout 10m
	SPARSESERVE_CUDA_LIB=$(abspath $(CUDA_LIB)) $(CUDA_BUILD)/live.test -test.run '^TestGPU' -test.v \
	  -test.timeout 10m

gpu-check:
	sh cuda/check.sh $(CUDA_OUT)

cuda-clean:
	rm -rf $(CUDA_BUILD)
