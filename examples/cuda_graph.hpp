// The step of cuda_graph, as its coroutine sees it: the sums of a batch's pixels and of their squares, channel by channel, added
// up in memory that stays. No CUDA in here: on the CPU the same calls do the same without a graph.
#pragma once

#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

class channel_sums {
 public:
  struct sums {
    std::array<std::uint64_t, 3> values{};  ///< of all pixels, 0..255
    std::array<std::uint64_t, 3> squares{};
    friend bool operator==(const sums&, const sums&) = default;
  };

  explicit channel_sums(leat::device where);
  channel_sums(const channel_sums&) = delete;
  channel_sums& operator=(const channel_sums&) = delete;
  ~channel_sums();

  [[nodiscard]] leat::stream stream() const;

  /// Puts the step for these pixels into the stream: by the graph that was captured for this memory and this number of rows, or,
  /// where there is none yet, after capturing it.
  ///   pixels   u8 [rows, height, width, 3], arrived as far as stream() is concerned
  void step(const leat::tensor& pixels);

  /// Waits for all steps.
  [[nodiscard]] sums read() const;
  /// Captured so far; 0 on the CPU.
  [[nodiscard]] std::size_t graphs() const;

 private:
  struct state;
  const std::unique_ptr<state> state_;
};
