// Values of the two protocol buffers that datasets are made of, found without protobuf: tf.train.Example (and SequenceExample) and
// Caffe's Datum.
#pragma once

#include "datasets/model/value_picker.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// A feature of an Example, or of a SequenceExample's context; or its frames of one name.
///   first    the first value of a list of bytes
///   values   how many there are, of all frames
struct example_feature {
  enum class list : std::uint8_t { none, bytes, floats, integers } holds = list::none;
  std::string_view name;
  std::span<const std::byte> first;
  std::size_t values = 0;
  bool are_frames = false;
};

/// Nothing where it is no Example.
///   source   tensorflow/core/example/{example,feature}.proto
[[nodiscard]] std::optional<std::vector<example_feature>> read_example(std::span<const std::byte> record);

/// Picks a feature: its one value of bytes, or its numbers as text, with spaces between them; of frames those of one after another.
[[nodiscard]] std::shared_ptr<const value_picker> pick_feature(std::string name);

/// What a Datum says of itself.
///   encoded   its data are a picture's file; else bytes of channels x height x width
struct datum {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t label = 0;
  bool has_label = false;
  bool encoded = false;
  std::span<const std::byte> data;
};
/// Nothing where it is none: other members, or none of data.
///   source   BVLC/caffe: src/caffe/proto/caffe.proto
[[nodiscard]] std::optional<datum> read_datum(std::span<const std::byte> record);

[[nodiscard]] std::shared_ptr<const value_picker> pick_datum_data();
[[nodiscard]] std::shared_ptr<const value_picker> pick_datum_label();

}  // namespace leat::datasets
