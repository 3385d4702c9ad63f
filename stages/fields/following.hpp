// What fields that follow a picture share.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_program.hpp"
#include "stages/pixels/placed_picture.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat::stages {

/// Makes its rows when those of its picture are made. A value out of a block is kept in the batch until then; other values stay where
/// they are.
class following_program : public field_program, ragged_facet, protected following_facet {
 public:
  const std::string& leader() const noexcept final { return leader_; }
  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const final {
    return keeps_ && output + 1 == outputs_.size() ? encoded_bytes : made_bytes(output, encoded_bytes);
  }
  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const final;
  outcome<void> make(field_scratch& scratch, const decode_input& input, const picture_geometry& picture,
                     std::span<row_target> rows) const final;

 protected:
  ///   outputs   of the target; what keeps a value stands behind them
  following_program(std::string leader, const datasets::dataset_model& dataset, std::uint16_t field,
                    std::vector<output_spec> outputs);

  void follow(const leading_facet& by) final {
    by_ = &by;
    take_size(by.row_height(), by.row_width());
  }

  /// The rows of the sample whose value is `encoded`.
  [[nodiscard]] virtual outcome<void> make_rows(field_scratch& scratch, const decode_input& input,
                                                std::span<const std::byte> encoded, const pixels::placed_picture& where,
                                                std::span<row_target> rows) const = 0;
  /// Of the picture's row.
  virtual void take_size(int /*height*/, int /*width*/) {}
  /// The sample's value, of what decode() was given or has kept.
  [[nodiscard]] std::span<const std::byte> value_of(std::span<const std::byte> encoded,
                                                    std::span<const row_target> rows) const {
    return keeps_ ? std::span<const std::byte>(rows.back().bytes.first(rows.back().used)) : encoded;
  }
  /// As ragged_facet has it.
  [[nodiscard]] virtual std::size_t made_bytes(std::size_t /*output*/, std::size_t encoded_bytes) const {
    return encoded_bytes;
  }

 private:
  std::string leader_;
  const leading_facet* by_ = nullptr;
  bool keeps_;
};

/// An output for a value that is kept in the batch until its rows can be made, and what puts it there.
[[nodiscard]] output_spec kept_value_of(const std::string& output);
[[nodiscard]] outcome<void> keep_value(const decode_input& input, row_target& kept);

/// The dataset's field of a member that follows a picture.
///   throws   error{errc::usage} as throw_no_field()
[[nodiscard]] std::uint16_t field_of_target(const datasets::dataset_model& dataset, const std::string& member,
                                            const std::string& output);

}  // namespace leat::stages
