// A trainer's step for benchmarks: it reads every byte of its batch, and then multiplies matrices for as long as it was told.
// Read by nvcc too: no coroutines.
#pragma once

#include <leat/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace leat::benchmarks {

/// Thread: one at a time. Throws std::runtime_error naming the call of CUDA's that failed.
class device_step {
 public:
  /// Takes all of its memory. cuBLAS where it was found when this was built, else a kernel of our own.
  device_step();
  device_step(const device_step&) = delete;
  device_step& operator=(const device_step&) = delete;
  ~device_step();

  /// "cuBLAS, bf16, 4096 x 4096 x 4096"
  [[nodiscard]] std::string name() const;

  /// How many products take `duration_ms` on this device as warm as it is now; at least 1.
  [[nodiscard]] unsigned products_for(double duration_ms);

  /// Puts a step into `in`: the sum of the batch's 32-bit words, added to checksum(), then the products.
  ///   data    on the device, aligned to 16 bytes; nothing is read where `bytes` is 0
  ///   bytes   a multiple of 16
  void launch(const void* data, std::size_t bytes, unsigned products, stream in);

  /// The sum of all words that steps have read since the last time, once all of `in` has passed. Waits for it.
  [[nodiscard]] std::uint64_t take_checksum(stream in);

 private:
  struct state;
  const std::unique_ptr<state> state_;
};

}  // namespace leat::benchmarks
