#include "datasets/wire/proto_value.hpp"

#include "base/proto_message.hpp"
#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/model/number_text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat::datasets {
namespace {

using message = proto_message;
using wire = proto_wire;

// The list of a Feature, as it lies there.
struct feature_list {
  example_feature::list holds = example_feature::list::none;
  std::span<const std::byte> bytes;
};

feature_list read_feature(std::span<const std::byte> feature) {
  feature_list found;
  message list(feature);
  while (list.next()) {
    if (list.type() != wire::bytes || list.number() < 1 || list.number() > 3) continue;
    found.holds = static_cast<example_feature::list>(list.number());
    found.bytes = list.bytes();
  }
  return found;
}

// A Feature; or a FeatureList, which has one Feature for each frame.
struct stored_feature {
  std::span<const std::byte> bytes;
  bool are_frames = false;
};

// Calls each(list) until that says to end.
template <class Each>
void for_each_list(const stored_feature& of, const Each& each) {
  if (!of.are_frames) {
    each(read_feature(of.bytes));
    return;
  }
  message frames(of.bytes);
  while (frames.next()) {
    if (frames.is(1, wire::bytes) && each(read_feature(frames.bytes()))) return;
  }
}

// Calls each(name, feature) until that says to end. An Example has its features where a SequenceExample has its context.
template <class Each>
void for_each_feature(std::span<const std::byte> record, const Each& each) {
  constexpr std::uint64_t frames_number = 2;
  message example(record);
  while (example.next()) {
    if (!example.is(1, wire::bytes) && !example.is(frames_number, wire::bytes)) continue;
    const bool are_frames = example.number() == frames_number;
    message features(example.bytes());
    while (features.next()) {
      if (!features.is(1, wire::bytes)) continue;
      message entry(features.bytes());
      std::string_view name;
      std::span<const std::byte> feature;
      while (entry.next()) {
        if (entry.is(1, wire::bytes)) {
          name = {reinterpret_cast<const char*>(entry.bytes().data()), entry.bytes().size()};
        } else if (entry.is(2, wire::bytes)) {
          feature = entry.bytes();
        }
      }
      if (each(name, stored_feature{feature, are_frames})) return;
    }
  }
}

// Packed or one by one.
bool add_floats(std::span<const std::byte> list, number_text& text) {
  message values(list);
  while (values.next()) {
    if (values.is(1, wire::fixed32) && !text.add(values.number_f32())) return false;
    if (!values.is(1, wire::bytes)) continue;
    cursor at(no_file, values.bytes(), 0);
    while (at.left() != 0) {
      if (!text.add(at.number<float>())) return false;
    }
  }
  return true;
}

bool add_integers(std::span<const std::byte> list, number_text& text) {
  message values(list);
  while (values.next()) {
    if (values.is(1, wire::varint) && !text.add(static_cast<std::int64_t>(values.integer()))) return false;
    if (!values.is(1, wire::bytes)) continue;
    cursor at(no_file, values.bytes(), 0);
    while (at.left() != 0) {
      if (!text.add(static_cast<std::int64_t>(at.varint()))) return false;
    }
  }
  return true;
}

std::size_t count_numbers(const feature_list& list) {
  std::size_t count = 0;
  for (message values(list.bytes); values.next();) {
    if (values.is(1, wire::varint) || values.is(1, wire::fixed32)) ++count;
    if (!values.is(1, wire::bytes)) continue;
    const std::span<const std::byte> packed = values.bytes();
    // The last byte of a varint has no highest bit.
    count += list.holds == example_feature::list::floats
                 ? packed.size() / sizeof(float)
                 : static_cast<std::size_t>(std::count_if(packed.begin(), packed.end(), [](std::byte each) {
                     return (each & std::byte{0x80}) == std::byte{0};
                   }));
  }
  return count;
}

std::optional<value_fault> copy(std::span<const std::byte> value, std::span<std::byte>& into) {
  if (!value.empty()) std::memcpy(into.data(), value.data(), value.size());
  into = into.first(value.size());
  return std::nullopt;
}

class feature_picker final : public value_picker {
 public:
  explicit feature_picker(std::string name) : name_(std::move(name)) {}

  // A number of one byte becomes up to three digits and a space; a float of four bytes fifteen characters.
  std::uint64_t room(std::uint64_t record_bytes) const noexcept override { return 4 * record_bytes; }

  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    try {
      std::optional<stored_feature> found;
      for_each_feature(record, [&](std::string_view name, const stored_feature& feature) {
        if (name != name_) return false;
        found = feature;
        return true;
      });
      if (!found) {
        return value_fault(str_cat("the Example has no feature '", name_, "'"), corrupt_kinds::incomplete);
      }
      return put(*found, into);
    } catch (const error& damage) {
      return damage.what();
    }
  }
  std::string what() const override { return str_cat("feature ", name_); }

 private:
  [[nodiscard]] std::optional<value_fault> put(const stored_feature& found, std::span<std::byte>& into) const {
    using list = example_feature::list;
    number_text text(into);
    std::span<const std::byte> value;
    std::size_t count = 0;  // of values of bytes
    bool has_numbers = false;
    bool fits = true;
    for_each_list(found, [&](const feature_list& each) {
      if (each.holds == list::bytes) {
        for (message values(each.bytes); values.next();) {
          if (values.is(1, wire::bytes) && count++ == 0) value = values.bytes();
        }
      } else if (each.holds != list::none) {
        has_numbers = true;
        fits = each.holds == list::floats ? add_floats(each.bytes, text) : add_integers(each.bytes, text);
      }
      return !fits;
    });
    if (count == 1 && !has_numbers) return copy(value, into);
    if (count != 0) {
      return str_cat("the feature '", name_, "' has ", count, " values of bytes", has_numbers ? " and numbers" : "",
                     " where one is expected");
    }
    if (!has_numbers && !found.are_frames) {
      return value_fault(str_cat("the Example has no feature '", name_, "'"), corrupt_kinds::incomplete);
    }
    if (!fits) return str_cat("the numbers of '", name_, "' are longer than the record");
    into = into.first(text.bytes());
    return std::nullopt;
  }

  std::string name_;
};

class datum_picker final : public value_picker {
 public:
  explicit datum_picker(bool label) : label_(label) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override { return label_ ? 20 : record_bytes; }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    const std::optional<datum> found = read_datum(record);
    if (!found) return "no Datum of Caffe";
    if (!label_) return copy(found->data, into);
    if (!found->has_label) return value_fault("the Datum has no label", corrupt_kinds::incomplete);
    number_text text(into);
    if (!text.add(found->label)) return "the label is longer than its room";
    into = into.first(text.bytes());
    return std::nullopt;
  }
  std::string what() const override { return label_ ? "label of a Datum" : "data of a Datum"; }

 private:
  bool label_;
};

}  // namespace

std::optional<std::vector<example_feature>> read_example(std::span<const std::byte> record) {
  constexpr std::size_t features_max = 4096;
  std::vector<example_feature> found;
  try {
    for_each_feature(record, [&](std::string_view name, const stored_feature& feature) {
      example_feature one{.name = name, .first = {}, .are_frames = feature.are_frames};
      for_each_list(feature, [&](const feature_list& list) {
        if (list.holds != example_feature::list::none) one.holds = list.holds;
        if (list.holds == example_feature::list::bytes) {
          for (message values(list.bytes); values.next();) {
            if (values.is(1, wire::bytes) && one.values++ == 0) one.first = values.bytes();
          }
        } else {
          one.values += count_numbers(list);
        }
        return false;
      });
      found.push_back(one);
      return found.size() == features_max;
    });
  } catch (const error&) {
    return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  return found;
}

std::optional<datum> read_datum(std::span<const std::byte> record) {
  enum { channels = 1, height, width, data, label, float_data, encoded };
  datum found;
  bool has_data = false;
  try {
    message members(record);
    while (members.next()) {
      const auto integer = static_cast<std::int64_t>(members.integer());
      if (members.is(channels, wire::varint)) {
        found.channels = integer;
      } else if (members.is(height, wire::varint)) {
        found.height = integer;
      } else if (members.is(width, wire::varint)) {
        found.width = integer;
      } else if (members.is(data, wire::bytes)) {
        found.data = members.bytes();
        has_data = true;
      } else if (members.is(label, wire::varint)) {
        found.label = integer;
        found.has_label = true;
      } else if (members.is(encoded, wire::varint)) {
        found.encoded = integer != 0;
      } else if (members.number() != float_data) {
        return std::nullopt;
      }
    }
  } catch (const error&) {
    return std::nullopt;
  }
  if (!has_data) return std::nullopt;
  return found;
}

std::shared_ptr<const value_picker> pick_feature(std::string name) {
  return std::make_shared<feature_picker>(std::move(name));
}
std::shared_ptr<const value_picker> pick_datum_data() { return std::make_shared<datum_picker>(false); }
std::shared_ptr<const value_picker> pick_datum_label() { return std::make_shared<datum_picker>(true); }

}  // namespace leat::datasets
