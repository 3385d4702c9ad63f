#include "stages/fields/segmentation.hpp"

#include "base/text.hpp"
#include "datasets/wire/json_value.hpp"
#include "stages/fields/number_list.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

// What ends the reading of one segmentation.
struct wrong_segmentation {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw wrong_segmentation{std::move(why)}; }

const datasets::json_member* find(const std::vector<datasets::json_member>& members, std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& each) { return each.key == key; });
  return found == members.end() ? nullptr : &*found;
}

std::vector<datasets::json_member> members_of(std::string_view object) {
  std::vector<datasets::json_member> members;
  if (const auto fault = datasets::read_members(object, members)) {
    refuse(str_cat("no JSON: ", fault->why, ", at byte ", fault->at));
  }
  return members;
}

const datasets::json_member& list_in(const std::vector<datasets::json_member>& members, std::string_view key) {
  const datasets::json_member* const found = find(members, key);
  if (found == nullptr) refuse(str_cat("the JSON has no member '", key, "', as those of open_coco() have"));
  if (found->kind != datasets::json_kind::list) refuse(str_cat("member '", key, "' is no list"));
  return *found;
}

// Behind those that are there.
void add_whole_numbers(const datasets::json_member& list, std::vector<std::int64_t>& to) {
  const std::size_t first = to.size();
  const std::size_t most = elements_max(std::nullopt, list.written.size());
  to.resize(first + most);
  row_writer<std::int64_t> row{.at = reinterpret_cast<std::byte*>(to.data() + first), .room = most};
  if (const auto wrong = read_text(list.written, row)) refuse(str_cat("member '", list.key, "': ", *wrong));
  to.resize(first + row.count);
}

std::vector<std::int64_t> whole_numbers(const datasets::json_member& list) {
  std::vector<std::int64_t> numbers;
  add_whole_numbers(list, numbers);
  return numbers;
}

// Takes a list apart from its begin.
class list_reader {
 public:
  explicit list_reader(std::string_view text) : rest_(text) {}

  // Whether `letter` is next; it is taken.
  bool take(char letter) {
    skip_blank();
    if (!rest_.starts_with(letter)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char letter) {
    if (!take(letter)) refuse(str_cat("'", shown(), "' stands where '", std::string_view(&letter, 1), "' is expected"));
  }
  // Calls each() before each of its elements.
  template <class Each>
  void each_element(const Each& each) {
    need('[');
    if (take(']')) return;
    do each();
    while (take(','));
    need(']');
  }
  double number() {
    skip_blank();
    double value = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (read.ec != std::errc{}) refuse(str_cat("'", shown(), "' is no number"));
    rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
    return value;
  }
  [[nodiscard]] char next() {
    skip_blank();
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take_word(std::string_view word) {
    skip_blank();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // An object that has no others in it.
  std::string_view object() {
    bool in_text = false;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (in_text && rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        in_text = !in_text;
      } else if (rest_[i] == '}' && !in_text) {
        const std::string_view found = rest_.substr(0, i + 1);
        rest_.remove_prefix(i + 1);
        return found;
      }
    }
    refuse("an object without an end");
  }

 private:
  void skip_blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  [[nodiscard]] std::string shown() const {
    std::string text;
    for (const char letter : rest_.substr(0, 12)) text += letter >= ' ' && letter <= '~' ? letter : '.';
    return text;
  }

  std::string_view rest_;
};

// Runs as pycocotools writes them: digits of 5 bits, the lowest first; from the fourth on what a run has more than the one two before.
void read_coded(std::string_view written, std::int64_t pixels, std::vector<std::int64_t>& to) {
  std::string text(written.size(), '\0');
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(text));
  if (const auto why = datasets::unescape(written, bytes)) refuse(*why);
  text.resize(bytes.size());
  const std::size_t first = to.size();
  for (std::size_t i = 0; i < text.size();) {
    std::int64_t value = 0;
    bool has_more = true;
    for (int shift = 0; has_more; shift += 5) {
      if (i == text.size()) refuse("the text of its runs ends within one");
      const int digit = text[i++] - '0';
      if (digit < 0 || digit > 63 || shift > 35) refuse("the text of its runs is none of pycocotools'");
      value |= std::int64_t{digit & 31} << shift;
      has_more = (digit & 32) != 0;
      if (!has_more && (digit & 16) != 0) value -= std::int64_t{32} << shift;
    }
    if (to.size() - first > 2) value += to[to.size() - 2];
    if (value < 0 || value > pixels) refuse(str_cat("a run of ", value, " pixels, and the picture has ", pixels));
    to.push_back(value);
  }
}

class segmentation_reader {
 public:
  segmentation_reader(int width, int height, pixels::mask_shapes& to) : width_(width), height_(height), to_(to) {}

  void read(std::string_view json) {
    const std::vector<datasets::json_member> members = members_of(json);
    const std::vector<std::int64_t> categories = whole_numbers(list_in(members, "categories"));
    std::vector<std::int64_t> crowds(categories.size(), 0);
    if (find(members, "iscrowd") != nullptr) crowds = whole_numbers(list_in(members, "iscrowd"));
    list_reader list(list_in(members, "segmentation").written);
    std::size_t count = 0;
    list.each_element([&] {
      if (count < categories.size() && count < crowds.size()) {
        shape_ = {.number = categories[count], .is_ignored = crowds[count] != 0};
      }
      try {
        read_object(list);
      } catch (wrong_segmentation& wrong) {
        refuse(str_cat("object ", count, ": ", wrong.why));
      }
      ++count;
    });
    if (count != categories.size() || count != crowds.size()) {
      refuse(str_cat("has ", count, " segmentations, ", categories.size(), " categories and ", crowds.size(),
                     " of iscrowd"));
    }
  }

 private:
  void read_object(list_reader& from) {
    if (from.take_word("null")) return;
    if (from.next() == '{') {
      read_runs(from.object());
    } else {
      from.each_element([&] { read_outline(from); });
    }
  }

  void read_outline(list_reader& from) {
    const std::size_t first = to_.places.size();
    from.each_element([&] {
      const double place = from.number();
      if (!(std::abs(place) <= pixels::outline_place_max)) refuse(str_cat("a corner at ", place));
      to_.places.push_back(place);
    });
    const std::size_t count = to_.places.size() - first;
    if (count % 2 != 0) refuse(str_cat("an outline of ", count, " numbers; a corner has 2"));
    add(true, first, count);
  }

  void read_runs(std::string_view object) {
    const std::vector<datasets::json_member> members = members_of(object);
    const std::vector<std::int64_t> size = whole_numbers(list_in(members, "size"));
    if (size.size() != 2 || size[0] != height_ || size[1] != width_) {
      refuse(str_cat("runs of ", joined(size, ", "), " pixels (height, width), and the picture has ", height_, ", ",
                     width_));
    }
    const datasets::json_member* const counts = find(members, "counts");
    if (counts == nullptr) refuse("the JSON has no member 'counts'");
    const std::int64_t pixels = std::int64_t{width_} * height_;
    const std::size_t first = to_.runs.size();
    if (counts->kind == datasets::json_kind::text) {
      read_coded(counts->written, pixels, to_.runs);
    } else {
      add_whole_numbers(list_in(members, "counts"), to_.runs);
    }
    std::int64_t sum = 0;
    for (std::size_t i = first; i < to_.runs.size() && sum <= pixels; ++i) {
      if (to_.runs[i] < 0) refuse(str_cat("a run of ", to_.runs[i], " pixels"));
      sum += std::min(to_.runs[i], pixels + 1);
    }
    if (sum != pixels) {
      refuse(str_cat("its runs have ", sum > pixels ? "more than " : "", std::min(sum, pixels),
                     " pixels, and the picture has ", pixels));
    }
    add(false, first, to_.runs.size() - first);
  }

  void add(bool is_outline, std::size_t first, std::size_t count) {
    shape_.is_outline = is_outline;
    shape_.first = first;
    shape_.count = count;
    to_.all.push_back(shape_);
  }

  int width_;
  int height_;
  pixels::mask_shapes& to_;
  pixels::mask_shape shape_;  // of the object that is read
};

}  // namespace

outcome<void> read_segmentation(std::string_view json, int width, int height, pixels::mask_shapes& to) {
  to.clear();
  try {
    segmentation_reader(width, height, to).read(json);
  } catch (wrong_segmentation& wrong) {
    return corrupt(std::move(wrong.why));
  }
  return {};
}

}  // namespace leat::stages
