// As a trainer written in CUDA sees leat, compiled with --default-stream per-thread.
#define CUDA_CONSUMER nvcc_per_thread
#include "cuda_consumer.cpp"
