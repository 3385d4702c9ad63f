// Values of many samples by one connection: dataset::read() makes one for each.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {

class value_reader {
 public:
  explicit value_reader(dataset samples) : samples_(std::move(samples)) {}

  // What the sample lacks, and what is made by a call, is dataset::read()'s.
  std::vector<std::byte> read(std::uint64_t sample, std::string_view field) {
    const datasets::dataset_model& model = *samples_.model();
    const std::optional<std::uint16_t> number = model.find_field(field);
    datasets::part_list parts;
    if (number) model.parts(sample, std::vector<datasets::need>{{.field = *number}}, parts);
    if (parts.empty()) return samples_.read(sample, field);
    std::vector<std::byte> bytes;
    datasets::append_field(model, sample, *number, {parts.data(), parts.size()}, sources_, bytes);
    return bytes;
  }
  std::string text(std::uint64_t sample, std::string_view field) {
    const std::vector<std::byte> bytes = read(sample, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  const dataset samples_;
  datasets::blocking_sources sources_;
};

}  // namespace leat::testing
