// As a trainer written in CUDA sees leat.
#define CUDA_CONSUMER nvcc
#include "cuda_consumer.cpp"
