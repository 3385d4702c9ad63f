// Rows of fixed size, one field or several side by side, for writing them elsewhere.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace leat::datasets {

/// A field that is wanted, and where it lies in a record.
///   field   index into dataset::fields(): those of the model, then its columns, of dataset_model::column_type()
///   bytes   of the field in each sample
struct row_place {
  std::uint16_t field = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Reads records of such fields. Blocks that the sample before had too are expanded once. Thread: one at a time.
class row_reader {
 public:
  ///   model, places   outlive this
  row_reader(const dataset_model& model, std::span<const row_place> places, std::uint64_t record_bytes);

  /// Fills `records`, one for each of `samples`.
  ///   throws   error{errc::corrupt} naming a sample that cannot be expanded, or has another size than was said; error{errc::io};
  ///            error{errc::cancelled} on stop
  void read(std::span<const std::uint64_t> samples, std::span<std::byte> records, const std::stop_token& stop);

 private:
  using requests = std::vector<std::vector<blocking_source::request>>;  // by source
  struct block {
    part of;
    std::vector<std::byte> decoded;
  };

  void add(std::uint64_t sample, std::span<std::byte> record, requests& reads, const std::stop_token& stop);
  void add_parts(std::uint64_t sample, const row_place& place, std::span<std::byte> row, requests& reads,
                 const std::stop_token& stop);
  std::span<const std::byte> value_of(std::uint64_t sample, const part& of, const std::stop_token& stop);
  const block& expanded(std::uint64_t sample, const part& wanted, const std::stop_token& stop);
  [[noreturn]] void refuse_size(std::uint64_t sample, const row_place& place, std::uint64_t bytes) const;

  const dataset_model& model_;
  const std::span<const row_place> places_;
  const std::uint64_t record_bytes_;
  blocking_sources sources_{opening_loop::traffic::many};
  part_list parts_;
  std::vector<std::byte> scratch_;
  std::vector<block> blocks_;         // of this sample
  std::vector<block> blocks_before_;  // of the one before it
};

}  // namespace leat::datasets
