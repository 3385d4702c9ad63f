#include "stages/fields/segmentation.hpp"

#include "base/text.hpp"
#include "datasets/wire/json_value.hpp"
#include "stages/fields/number_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

// What ends the reading of one segmentation.
struct wrong_segmentation {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw wrong_segmentation{std::move(why)}; }

std::optional<datasets::json_member> find(std::string_view object, std::string_view key) {
  std::optional<datasets::json_fault> fault;
  std::optional<datasets::json_member> found = datasets::find_member(object, key, fault);
  if (fault) refuse(str_cat("no JSON: ", fault->why, ", at byte ", fault->at));
  return found;
}

datasets::json_member list_in(std::string_view object, std::string_view key) {
  std::optional<datasets::json_member> found = find(object, key);
  if (!found) refuse(str_cat("the JSON has no member '", key, "', as those of open_coco() have"));
  if (found->kind != datasets::json_kind::list) refuse(str_cat("member '", key, "' is no list"));
  return std::move(*found);
}

// Behind those that are there.
template <class Number>
void add_numbers(const datasets::json_member& list, std::pmr::vector<Number>& to) {
  const std::size_t first = to.size();
  const std::size_t most = numbers_max(list.written);
  to.resize(first + most);
  row_writer<Number> row{.at = reinterpret_cast<std::byte*>(to.data() + first), .room = most};
  if (const auto wrong = read_text(list.written, row)) refuse(str_cat("member '", list.key, "': ", *wrong));
  to.resize(first + row.count);
}

// Height and width.
std::array<std::int64_t, 2> size_in(std::string_view object) {
  const datasets::json_member list = list_in(object, "size");
  std::array<std::int64_t, 2> size{};
  row_writer<std::int64_t> row{.at = reinterpret_cast<std::byte*>(size.data()), .room = size.size()};
  if (const auto wrong = read_text(list.written, row)) refuse(str_cat("member 'size': ", *wrong));
  if (row.count != size.size()) refuse(str_cat("a size of ", row.count, " numbers; it has 2, height and width"));
  return size;
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

// The letters that a text of JSON stands for, one after another. Of escapes those that ASCII needs, which pycocotools' letters are.
class letter_reader {
 public:
  explicit letter_reader(std::string_view written) : rest_(written) {}

  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  char next() {
    char letter = take();
    if (letter != '\\') return letter;
    letter = rest_.empty() ? '\0' : take();
    if (letter == '\\') return letter;
    unsigned code = 0;
    const std::string_view digits = rest_.substr(0, 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    const bool is_whole = digits.size() == 4 && read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
    if (letter != 'u' || !is_whole || code > '~') return '\0';  // None of pycocotools' letters.
    rest_.remove_prefix(digits.size());
    return static_cast<char>(code);
  }

 private:
  char take() {
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    return letter;
  }

  std::string_view rest_;
};

// Runs as pycocotools writes them: digits of 5 bits, the lowest first; from the fourth on what a run has more than the one two before.
void read_coded(std::string_view written, std::int64_t pixels, std::pmr::vector<double>& to) {
  letter_reader letters(written);
  const std::size_t first = to.size();
  while (!letters.empty()) {
    std::int64_t value = 0;
    bool has_more = true;
    for (int shift = 0; has_more; shift += 5) {
      if (letters.empty()) refuse("the text of its runs ends within one");
      const int digit = letters.next() - '0';
      if (digit < 0 || digit > 63 || shift > 35) refuse("the text of its runs is none of pycocotools'");
      value |= std::int64_t{digit & 31} << shift;
      has_more = (digit & 32) != 0;
      if (!has_more && (digit & 16) != 0) value -= std::int64_t{32} << shift;
    }
    if (to.size() - first > 2) value += static_cast<std::int64_t>(to[to.size() - 2]);
    if (value < 0 || value > pixels) refuse(str_cat("a run of ", value, " pixels, and the picture has ", pixels));
    to.push_back(static_cast<double>(value));
  }
}

// The most numbers and shapes of a segmentation. Each letter of a text may be a run.
struct counted_shapes {
  std::size_t numbers = 0;
  std::size_t shapes = 0;
};
counted_shapes count_shapes(std::string_view json) {
  counted_shapes found{.numbers = numbers_max(json)};
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') in_text = !in_text;
    if (in_text) {
      ++found.numbers;
      i += json[i] == '\\' ? 1 : 0;
    } else {
      found.shapes += json[i] == '[' || json[i] == '{' ? 1 : 0;
    }
  }
  return found;
}

// Where open_coco() has read an object; nothing where that is not said, or damaged too.
std::string place_of(std::string_view json, std::size_t object) try {
  std::optional<datasets::json_fault> fault;
  const std::optional<datasets::json_member> places = datasets::find_member(json, "at", fault);
  if (fault || !places || places->kind != datasets::json_kind::list) return "";
  list_reader list(places->written);
  std::size_t number = 0;
  std::string text;
  list.each_element([&] {
    const double byte = list.number();
    if (number++ == object && byte > 0 && byte < 0x1p53) {
      text = str_cat(", at byte ", static_cast<std::uint64_t>(byte), " of the annotations");
    }
  });
  return text;
} catch (const wrong_segmentation&) {
  return "";
}

class segmentation_reader {
 public:
  segmentation_reader(int width, int height, pixels::mask_shapes& to) : width_(width), height_(height), to_(to) {}

  void read(std::string_view json) {
    std::pmr::memory_resource* const memory = to_.numbers.get_allocator().resource();
    std::pmr::vector<std::int64_t> categories(memory);
    add_numbers(list_in(json, "categories"), categories);
    std::pmr::vector<std::int64_t> crowds(memory);
    if (const auto list = find(json, "iscrowd")) {
      add_numbers(list_in(json, "iscrowd"), crowds);
    } else {
      crowds.assign(categories.size(), 0);
    }
    const datasets::json_member shapes = list_in(json, "segmentation");
    const counted_shapes room = count_shapes(shapes.written);
    to_.numbers.reserve(room.numbers);
    to_.all.reserve(room.shapes);
    list_reader list(shapes.written);
    std::size_t& count = to_.objects;
    list.each_element([&] {
      if (count < categories.size() && count < crowds.size()) {
        shape_ = {
            .number = categories[count], .object = static_cast<std::uint32_t>(count), .is_ignored = crowds[count] != 0};
      }
      try {
        read_object(list);
      } catch (wrong_segmentation& wrong) {
        refuse(str_cat("object ", count, place_of(json, count), ": ", wrong.why));
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
      return;
    }
    bool is_first = true;
    from.each_element([&] { is_first = read_outline(from, is_first) && is_first; });
  }

  // Whether it is empty.
  bool read_outline(list_reader& from, bool is_first) {
    const std::size_t first = to_.numbers.size();
    from.each_element([&] {
      const double place = from.number();
      if (!(std::abs(place) <= pixels::outline_place_max)) refuse(str_cat("a corner at ", place));
      to_.numbers.push_back(place);
    });
    const std::size_t count = to_.numbers.size() - first;
    if (count % 2 != 0) refuse(str_cat("an outline of ", count, " numbers; a corner has 2"));
    if (is_first && (count == 2 || count == 4)) {
      refuse(str_cat("an outline of ", count, " numbers, which pycocotools refuses; one of 3 corners has 6"));
    }
    add(true, first, count);
    return count == 0;
  }

  void read_runs(std::string_view object) {
    const std::array<std::int64_t, 2> size = size_in(object);
    if (size[0] != height_ || size[1] != width_) {
      refuse(str_cat("runs of ", joined(size, ", "), " pixels (height, width), and the picture has ", height_, ", ",
                     width_));
    }
    const std::optional<datasets::json_member> counts = find(object, "counts");
    if (!counts) refuse("the JSON has no member 'counts'");
    const std::int64_t pixels = std::int64_t{width_} * height_;
    const std::size_t first = to_.numbers.size();
    if (counts->kind == datasets::json_kind::text) {
      read_coded(counts->written, pixels, to_.numbers);
    } else {
      add_numbers(list_in(object, "counts"), to_.numbers);
    }
    double sum = 0;
    const auto all = static_cast<double>(pixels);
    for (std::size_t i = first; i < to_.numbers.size() && sum <= all; ++i) {
      const double run = to_.numbers[i];
      if (!(run >= 0 && run == std::floor(run))) refuse(str_cat("a run of ", run, " pixels"));
      sum += std::min(run, all + 1);
    }
    if (sum != all) {
      refuse(str_cat("its runs have ", sum > all ? "more than " : "", static_cast<std::int64_t>(std::min(sum, all)),
                     " pixels, and the picture has ", pixels));
    }
    add(false, first, to_.numbers.size() - first);
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
  try {
    segmentation_reader(width, height, to).read(json);
  } catch (wrong_segmentation& wrong) {
    return corrupt(std::move(wrong.why));
  }
  return {};
}

// Categories and crowds are of the numbers too, and crowds that are not there are as many as categories.
std::size_t segmentation_bytes_max(std::string_view json) {
  const counted_shapes found = count_shapes(json);
  return found.numbers * (sizeof(double) + sizeof(std::int64_t)) + found.shapes * sizeof(pixels::mask_shape) +
         4 * alignof(std::max_align_t);
}

}  // namespace leat::stages
