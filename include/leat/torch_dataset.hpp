// A loader as a dataset of torch::data. Includes headers of libtorch, so loader.hpp does not include it.
#pragma once

#include <leat/loading.hpp>
#include <leat/torch.hpp>

#include <torch/data/datasets/stateful.h>
#include <torch/data/example.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace leat {

/// Gives what a loader gives: `torch::data::make_data_loader(leat::torch_dataset(train, "jpg", "cls"), options)`, an epoch
/// for each begin(). The loader's order and batch_size hold: leave torch's batch_size and sampler alone, and its workers
/// at 0, since the loader reads ahead by itself. Refers to the loader.
///   examples   of the last batch's shape: `.data` is one output and `.target` the other, as to_torch() gives them
///   epochs     a begin() within an epoch drops the rest of it. The first begin() of a resumed loader goes on
class torch_dataset : public torch::data::datasets::StatefulDataset<torch_dataset, torch::data::Example<>> {
 public:
  torch_dataset(loader& from, std::string data, std::string target)
      : from_(&from), data_(std::move(data)), target_(std::move(target)) {}

  std::optional<torch::data::Example<>> get_batch(std::size_t /*batch_size*/) override {
    const std::optional<batch> got = from_->next_blocking();
    within_epoch_ = got.has_value();
    if (!got) return std::nullopt;
    return torch::data::Example<>(to_torch((*got)[data_]), to_torch((*got)[target_]));
  }
  void reset() override {
    if (std::exchange(within_epoch_, false)) from_->skip_epoch();
  }
  /// Rows of an epoch.
  [[nodiscard]] std::optional<std::size_t> size() const override { return from_->rows(); }

  /// A loader takes its place when it is made: loader::state_after() beside the model's checkpoint, and
  /// loader_options::resume.
  ///   throws   error{errc::unsupported}, both
  void save(torch::serialize::OutputArchive& /*archive*/) const override { refuse(); }
  void load(torch::serialize::InputArchive& /*archive*/) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw error(errc::unsupported,
                "torch_dataset has no state of its own: save loader::state(), and give it to loader_options::resume");
  }

  loader* from_;
  std::string data_;
  std::string target_;
  bool within_epoch_ = false;
};

}  // namespace leat
