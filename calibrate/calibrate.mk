# make calibrate   builds the CUDA library, measures this machine's GPU and writes
# out/calibration.toml
.PHONY: calibrate
calibrate: cuda build
	./sparseserve calibrate run $(CALIBRATE)
