// The model of trainer_cuda, as its coroutine sees it. No CUDA in here: the same calls train on a GPU and on the CPU.
#pragma once

#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <memory>

/// Two layers, trained by stochastic gradient descent on the cross-entropy.
class two_layers {
 public:
  struct shape {
    std::size_t inputs = 0;
    std::size_t hidden = 0;
    std::size_t classes = 0;
    std::size_t rows_max = 0;        ///< of a batch
    std::size_t epoch_rows_max = 0;  ///< of an epoch
  };
  struct epoch_result {
    double loss = 0;  ///< mean over the rows, each before its step
    std::size_t rows = 0;
    std::size_t right = 0;
    double took_s = 0;     ///< from the first wait to the last step's end, on the device's own clock
    double stalled_s = 0;  ///< of these, waiting for data
  };

  /// On `where`; its memory and its stream are made here, and none later.
  two_layers(leat::device where, const shape& of);
  two_layers(const two_layers&) = delete;
  two_layers& operator=(const two_layers&) = delete;
  ~two_layers();

  /// The stream that steps are put into: a batch's wait_on() takes it.
  [[nodiscard]] leat::stream stream() const;

  /// Before a batch is waited for: from here to the step counts as waiting for data.
  void wait_begins();
  /// Puts a step into the stream and returns; on the CPU, makes it.
  ///   pixels   f32 [rows, ...], `inputs` of them a row
  ///   labels   i64 [rows]
  void step(const leat::tensor& pixels, const leat::tensor& labels, float rate);
  /// Waits for all steps of the epoch: once an epoch, and never within.
  [[nodiscard]] epoch_result end_epoch();

 private:
  struct state;
  const std::unique_ptr<state> state_;
};
