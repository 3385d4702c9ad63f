// A dataset of nothing but places: records of one size, one after the other in one file of some source.
#pragma once

#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {

/// One field, "x", of u8.
class raw_records final : public datasets::dataset_model {
 public:
  ///   alignment   where they say of themselves that they lie
  raw_records(std::shared_ptr<const io::source_description> from, std::uint64_t count, std::uint64_t record_bytes,
              std::uint32_t alignment = 1)
      : count_(count), record_bytes_(record_bytes) {
    sources_.push_back(std::move(from));
    field_info& info = fields_.emplace_back();
    info.name = "x";
    info.samples = count;
    info.bytes_max = record_bytes;
    info.bytes_total = count * record_bytes;
    info.kind = field_kind::tensor;
    info.shape = {static_cast<std::int64_t>(record_bytes)};
    info.alignment = alignment;
  }

  std::uint64_t size() const noexcept override { return count_; }
  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    if (needs.empty()) return;
    out.push_back(
        {.where = {.offset = sample * record_bytes_, .stored_bytes = record_bytes_, .decoded_bytes = record_bytes_}});
  }
  std::string name(std::uint64_t sample) const override { return str_cat("record ", sample); }
  dataset_memory memory() const override { return {}; }

 private:
  const std::uint64_t count_;
  const std::uint64_t record_bytes_;
};

}  // namespace leat::benchmarks
