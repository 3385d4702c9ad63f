#include "datasets/wire/serialized_value.hpp"

#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/model/number_text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t values_max = 65'536;
constexpr int depth_max = 64;
constexpr std::size_t key_bytes_max = 256;
constexpr std::size_t path_bytes_max = 1024;
/// One value. Lists, tuples and dicts name others by their numbers, dicts a key and its value in turn.
struct value {
  enum class what : std::uint8_t { none, whole, real, bytes, text, list, dict } is = what::none;
  bool is_single = false;  // of `real`: it was written with 32 bits
  std::int64_t whole = 0;
  double real = 0;
  std::span<const std::byte> bytes = {};
  std::vector<std::uint32_t> items = {};

  [[nodiscard]] bool is_number() const noexcept { return is == what::whole || is == what::real; }
  [[nodiscard]] bool is_leaf() const noexcept { return is != what::list && is != what::dict; }
};

struct value_tree {
  std::vector<value> values;
  std::uint32_t root = 0;

  std::uint32_t add(value one) {
    if (values.size() == values_max) throw error(errc::limit, str_cat("more than ", values_max, " values"));
    values.push_back(std::move(one));
    return static_cast<std::uint32_t>(values.size() - 1);
  }
};

/// Bytes of the highest place first.
template <class Number>
Number big_endian(cursor& at) {
  std::array<std::byte, sizeof(Number)> swapped;
  const std::span<const std::byte> bytes = at.take(sizeof(Number));
  std::reverse_copy(bytes.begin(), bytes.end(), swapped.begin());
  return std::bit_cast<Number>(swapped);
}

class msgpack_reader {
 public:
  explicit msgpack_reader(std::span<const std::byte> record) : at_(no_file, record, 0) {}

  value_tree read() {
    tree_.root = next(0);
    if (at_.left() != 0) at_.fail("more behind the value of msgpack");
    return std::move(tree_);
  }

 private:
  std::uint32_t next(int depth) {
    if (depth > depth_max) throw error(errc::limit, str_cat("values more than ", depth_max, " deep"));
    const auto code = at_.number<std::uint8_t>();
    if (code < 0x80) return whole(code);
    if (code < 0x90) return items(value::what::dict, std::uint64_t{2} * (code & 0x0FU), depth);
    if (code < 0xA0) return items(value::what::list, code & 0x0FU, depth);
    if (code < 0xC0) return bytes(value::what::text, code & 0x1FU);
    if (code >= 0xE0) return whole(static_cast<std::int8_t>(code));
    switch (code) {
      case 0xC0:
        return tree_.add({});
      case 0xC2:
      case 0xC3:
        return whole(code & 1);
      case 0xC4:
        return bytes(value::what::bytes, big_endian<std::uint8_t>(at_));
      case 0xC5:
        return bytes(value::what::bytes, big_endian<std::uint16_t>(at_));
      case 0xC6:
        return bytes(value::what::bytes, big_endian<std::uint32_t>(at_));
      case 0xCA:
        return tree_.add({.is = value::what::real, .is_single = true, .real = big_endian<float>(at_)});
      case 0xCB:
        return tree_.add({.is = value::what::real, .real = big_endian<double>(at_)});
      case 0xCC:
        return whole(big_endian<std::uint8_t>(at_));
      case 0xCD:
        return whole(big_endian<std::uint16_t>(at_));
      case 0xCE:
        return whole(big_endian<std::uint32_t>(at_));
      case 0xCF: {
        const auto number = big_endian<std::uint64_t>(at_);
        if (number >> 63 != 0) at_.fail("a number of more than 63 bits");
        return whole(static_cast<std::int64_t>(number));
      }
      case 0xD0:
        return whole(big_endian<std::int8_t>(at_));
      case 0xD1:
        return whole(big_endian<std::int16_t>(at_));
      case 0xD2:
        return whole(big_endian<std::int32_t>(at_));
      case 0xD3:
        return whole(big_endian<std::int64_t>(at_));
      case 0xD9:
        return bytes(value::what::text, big_endian<std::uint8_t>(at_));
      case 0xDA:
        return bytes(value::what::text, big_endian<std::uint16_t>(at_));
      case 0xDB:
        return bytes(value::what::text, big_endian<std::uint32_t>(at_));
      case 0xDC:
        return items(value::what::list, big_endian<std::uint16_t>(at_), depth);
      case 0xDD:
        return items(value::what::list, big_endian<std::uint32_t>(at_), depth);
      case 0xDE:
        return items(value::what::dict, std::uint64_t{2} * big_endian<std::uint16_t>(at_), depth);
      case 0xDF:
        return items(value::what::dict, std::uint64_t{2} * big_endian<std::uint32_t>(at_), depth);
      case 0xC1:
        at_.fail("a byte that msgpack never uses");
      default:
        throw error(errc::unsupported, "an extension type of msgpack");
    }
  }

  std::uint32_t whole(std::int64_t number) { return tree_.add({.is = value::what::whole, .whole = number}); }
  std::uint32_t bytes(value::what is, std::uint64_t count) { return tree_.add({.is = is, .bytes = at_.take(count)}); }
  std::uint32_t items(value::what is, std::uint64_t count, int depth) {
    if (count > at_.left()) at_.fail("more values than the record has bytes");
    value made{.is = is};
    made.items.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, values_max)));
    for (std::uint64_t i = 0; i < count; ++i) made.items.push_back(next(depth + 1));
    return tree_.add(std::move(made));
  }

  cursor at_;
  value_tree tree_;
};

// The opcodes of a pickle that make plain values; none calls anything.
enum class opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  int32 = 'J',
  uint8 = 'K',
  uint16 = 'M',
  none = 'N',
  real = 'G',
  short_string = 'U',
  string = 'T',
  unicode = 'X',
  bytes = 'B',
  short_bytes = 'C',
  append = 'a',
  appends = 'e',
  set_item = 's',
  set_items = 'u',
  tuple = 't',
  list = 'l',
  dict = 'd',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  put = 'q',
  long_put = 'r',
  get = 'h',
  long_get = 'j',
  protocol = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  yes = 0x88,
  no = 0x89,
  long1 = 0x8A,
  short_unicode = 0x8C,
  unicode8 = 0x8D,
  bytes8 = 0x8E,
  memoize = 0x94,
  frame = 0x95,
  byte_array8 = 0x96,
};

/// The machine of a stack and a memo that a pickle is a program for.
class pickle_reader {
 public:
  explicit pickle_reader(std::span<const std::byte> record) : at_(no_file, record, 0) {}

  value_tree read() {
    while (step()) {
    }
    if (at_.left() != 0) at_.fail("more behind the end of the pickle");
    tree_.root = pop();
    return std::move(tree_);
  }

 private:
  bool step() {
    const auto code = at_.number<std::uint8_t>();
    switch (static_cast<opcode>(code)) {
      case opcode::protocol:
        at_.skip(1);
        return true;
      case opcode::frame:
        at_.skip(8);
        return true;
      case opcode::stop:
        return false;
      case opcode::mark:
        marks_.push_back(stack_.size());
        return true;
      case opcode::none:
        return push({});
      case opcode::yes:
      case opcode::no:
        return whole(code == static_cast<std::uint8_t>(opcode::yes) ? 1 : 0);
      case opcode::int32:
        return whole(at_.number<std::int32_t>());
      case opcode::uint8:
        return whole(at_.number<std::uint8_t>());
      case opcode::uint16:
        return whole(at_.number<std::uint16_t>());
      case opcode::long1:
        return long_number(at_.take(at_.number<std::uint8_t>()));
      case opcode::real:
        return push({.is = value::what::real, .real = big_endian<double>(at_)});
      case opcode::short_bytes:
      case opcode::short_string:
        return bytes(value::what::bytes, at_.number<std::uint8_t>());
      case opcode::bytes:
      case opcode::string:
        return bytes(value::what::bytes, at_.number<std::uint32_t>());
      case opcode::bytes8:
      case opcode::byte_array8:
        return bytes(value::what::bytes, at_.number<std::uint64_t>());
      case opcode::short_unicode:
        return bytes(value::what::text, at_.number<std::uint8_t>());
      case opcode::unicode:
        return bytes(value::what::text, at_.number<std::uint32_t>());
      case opcode::unicode8:
        return bytes(value::what::text, at_.number<std::uint64_t>());
      case opcode::empty_tuple:
      case opcode::empty_list:
        return push({.is = value::what::list});
      case opcode::empty_dict:
        return push({.is = value::what::dict});
      case opcode::tuple:
      case opcode::list:
        return push({.is = value::what::list, .items = to_mark()});
      case opcode::dict:
        return push({.is = value::what::dict, .items = pairs(to_mark())});
      case opcode::tuple1:
        return push({.is = value::what::list, .items = popped(1)});
      case opcode::tuple2:
        return push({.is = value::what::list, .items = popped(2)});
      case opcode::tuple3:
        return push({.is = value::what::list, .items = popped(3)});
      case opcode::append:
        return extend(value::what::list, popped(1));
      case opcode::appends:
        return extend(value::what::list, to_mark());
      case opcode::set_item:
        return extend(value::what::dict, popped(2));
      case opcode::set_items:
        return extend(value::what::dict, pairs(to_mark()));
      case opcode::memoize:
        return remember(memo_.size());
      case opcode::put:
        return remember(at_.number<std::uint8_t>());
      case opcode::long_put:
        return remember(at_.number<std::uint32_t>());
      case opcode::get:
        return recall(at_.number<std::uint8_t>());
      case opcode::long_get:
        return recall(at_.number<std::uint32_t>());
    }
    constexpr std::string_view digits = "0123456789abcdef";
    throw error(errc::unsupported,
                str_cat("a pickle with the opcode 0x", digits.substr(code >> 4, 1), digits.substr(code & 15U, 1),
                        ", which makes more than bytes, texts, numbers, lists, tuples and dicts"));
  }

  bool push(value one) {
    stack_.push_back(tree_.add(std::move(one)));
    return true;
  }
  bool whole(std::int64_t number) { return push({.is = value::what::whole, .whole = number}); }
  bool bytes(value::what is, std::uint64_t count) { return push({.is = is, .bytes = at_.take(count)}); }

  // Two's complement, the lowest byte first.
  bool long_number(std::span<const std::byte> little) {
    if (little.size() > sizeof(std::int64_t)) at_.fail("a number of more than 64 bits");
    const bool negative = !little.empty() && (little.back() & std::byte{0x80}) != std::byte{};
    std::int64_t number = negative ? -1 : 0;
    std::memcpy(&number, little.data(), little.size());
    return whole(number);
  }

  std::uint32_t pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back()))
      at_.fail("a pickle that takes what is not there");
    const std::uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<std::uint32_t> popped(std::size_t count) {
    std::vector<std::uint32_t> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<std::uint32_t> to_mark() {
    if (marks_.empty()) at_.fail("a pickle without a mark where it needs one");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::uint32_t> items(from, stack_.end());
    // Values may be named many times over: what is kept of that is bounded.
    named_ += items.size();
    if (named_ > values_max) throw error(errc::limit, str_cat("more than ", values_max, " values"));
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<std::uint32_t> pairs(std::vector<std::uint32_t> items) const {
    if (items.size() % 2 != 0) at_.fail("a dict with a key that has no value");
    return items;
  }
  bool extend(value::what is, const std::vector<std::uint32_t>& items) {
    const std::uint32_t to = pop();
    stack_.push_back(to);
    value& into = tree_.values[to];
    if (into.is != is) at_.fail("a pickle that adds to what is no list or dict");
    // Those to a mark were counted there.
    named_ += items.size() <= 2 ? items.size() : 0;
    if (named_ > values_max) throw error(errc::limit, str_cat("more than ", values_max, " values"));
    into.items.insert(into.items.end(), items.begin(), items.end());
    return true;
  }

  bool remember(std::uint64_t place) {
    if (place > memo_.size()) at_.fail("a place of the memo that was left out");
    const std::uint32_t top = pop();
    stack_.push_back(top);
    if (place == memo_.size()) memo_.push_back(top);
    memo_[static_cast<std::size_t>(place)] = top;
    return true;
  }
  bool recall(std::uint64_t place) {
    if (place >= memo_.size()) at_.fail("a place of the memo where nothing is");
    stack_.push_back(memo_[static_cast<std::size_t>(place)]);
    return true;
  }

  cursor at_;
  value_tree tree_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint32_t> memo_;
  std::size_t named_ = 0;
};

value_tree read_tree(serialization how, std::span<const std::byte> record) {
  return how == serialization::msgpack ? msgpack_reader(record).read() : pickle_reader(record).read();
}

bool is_of_numbers(const value_tree& tree, const value& list) {
  return list.is == value::what::list && std::all_of(list.items.begin(), list.items.end(),
                                                     [&](std::uint32_t each) { return tree.values[each].is_number(); });
}

/// Calls each(path, value) for the values that are no dicts, nor lists that are the record itself and not of numbers, until that says to end.
template <class Each>
class walk {
 public:
  walk(const value_tree& tree, const Each& each) : tree_(tree), each_(each) {}

  void run() { static_cast<void>(visit(tree_.root, "", 0)); }

 private:
  bool visit(std::uint32_t number, const std::string& path, int depth) {
    if (depth > depth_max || ++visited_ > values_max) {
      throw error(errc::limit, str_cat("more than ", values_max, " values, or more than ", depth_max, " deep"));
    }
    if (path.size() > path_bytes_max)
      throw error(errc::limit, str_cat("a path of more than ", path_bytes_max, " bytes"));
    const value& here = tree_.values[number];
    // How many a list has differs from record to record, so that its places are no fields; but for those of a record that is a list.
    const bool is_list = here.is == value::what::list && (depth > 0 || here.items.empty());
    if (here.is_leaf() || is_list || is_of_numbers(tree_, here)) return each_(path.empty() ? "value" : path, here);
    const std::size_t step = here.is == value::what::dict ? 2 : 1;
    for (std::size_t i = 0; i + step <= here.items.size(); i += step) {
      const std::string key = step == 2 ? key_of(tree_.values[here.items[i]]) : std::to_string(i);
      if (visit(here.items[i + step - 1], str_cat(path, path.empty() ? "" : ".", key), depth + 1)) return true;
    }
    return false;
  }

  static std::string key_of(const value& key) {
    if (key.is == value::what::whole) return std::to_string(key.whole);
    const std::string_view text(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size());
    const bool is_name = (key.is == value::what::text || key.is == value::what::bytes) && !text.empty() &&
                         text.size() <= key_bytes_max && std::none_of(text.begin(), text.end(), [](char letter) {
                           return static_cast<unsigned char>(letter) < ' ' || letter == '\x7F';
                         });
    if (!is_name) throw error(errc::format, "a dict with a key that is no name");
    return std::string(text);
  }

  const value_tree& tree_;
  const Each& each_;
  std::size_t visited_ = 0;
};

template <class Each>
void for_each_value(const value_tree& tree, const Each& each) {
  walk<Each>(tree, each).run();
}

bool add_number(number_text& text, const value& number) {
  if (number.is == value::what::whole) return text.add(number.whole);
  return number.is_single ? text.add(static_cast<float>(number.real)) : text.add(number.real);
}

class member_picker final : public value_picker {
 public:
  member_picker(serialization how, std::string path, serialized_member::content holds)
      : how_(how), path_(std::move(path)), holds_(holds) {}

  // A number of one byte becomes up to three digits and a space, or a sign; one of four bytes fifteen characters.
  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    if (holds_ == serialized_member::content::number) return 32;
    return holds_ == serialized_member::content::numbers ? 4 * record_bytes : record_bytes;
  }

  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    try {
      const value_tree tree = read_tree(how_, record);
      std::optional<value_fault> failure(std::in_place, str_cat("the record has no '", path_, "'"),
                                         corrupt_kinds::incomplete);
      for_each_value(tree, [&](std::string_view path, const value& found) {
        if (path != path_) return false;
        failure = put(tree, found, into);
        return true;
      });
      return failure;
    } catch (const error& damage) {
      return damage.what();
    }
  }
  std::string what() const override { return str_cat(how_ == serialization::msgpack ? "msgpack " : "pickle ", path_); }

 private:
  [[nodiscard]] std::optional<value_fault> put(const value_tree& tree, const value& found,
                                               std::span<std::byte>& into) const {
    if (found.is == value::what::none)
      return value_fault(str_cat("'", path_, "' is None here"), corrupt_kinds::incomplete);
    const bool is_bytes = found.is == value::what::bytes || found.is == value::what::text;
    if (is_bytes && found.bytes.size() <= into.size()) {
      if (!found.bytes.empty()) std::memcpy(into.data(), found.bytes.data(), found.bytes.size());
      into = into.first(found.bytes.size());
      return std::nullopt;
    }
    if (found.is == value::what::list && !is_of_numbers(tree, found))
      return str_cat("'", path_, "' is a list of more than numbers");
    number_text text(into);
    bool fits = !is_bytes;
    if (found.is_number()) fits = add_number(text, found);
    for (const std::uint32_t each : found.items) fits = fits && add_number(text, tree.values[each]);
    if (!fits)
      return str_cat("'", path_, "' is longer here than in the first record, where it is a number, or than the record");
    into = into.first(text.bytes());
    return std::nullopt;
  }

  serialization how_;
  std::string path_;
  serialized_member::content holds_;
};

}  // namespace

std::optional<serialization> serialization_of(std::span<const std::byte> record) noexcept {
  if (record.size() < 3) return std::nullopt;
  const auto first = std::to_integer<std::uint8_t>(record[0]);
  const auto second = std::to_integer<std::uint8_t>(record[1]);
  if (first == 0x80 && second >= 2 && second <= 5 && record.back() == std::byte{'.'}) return serialization::pickle;
  if ((first > 0x80 && first < 0xA0 && first != 0x90) || (first >= 0xDC && first <= 0xDF))
    return serialization::msgpack;
  return std::nullopt;
}

std::vector<serialized_member> read_serialized(serialization how, std::span<const std::byte> record) {
  using content = serialized_member::content;
  const value_tree tree = read_tree(how, record);
  std::vector<serialized_member> members;
  for_each_value(tree, [&](std::string_view path, const value& found) {
    content holds = content::none;
    if (found.is == value::what::bytes) holds = content::bytes;
    if (found.is == value::what::text) holds = content::text;
    if (found.is_number()) holds = content::number;
    if (found.is == value::what::list) holds = is_of_numbers(tree, found) ? content::numbers : content::other;
    if (members.size() == serialized_fields_max) {
      throw error(errc::limit, str_cat("more than ", serialized_fields_max, " fields"));
    }
    members.push_back({holds, std::string(path), found.bytes});
    return false;
  });
  return members;
}

std::shared_ptr<const value_picker> pick_member(serialization how, std::string path, serialized_member::content holds) {
  return std::make_shared<member_picker>(how, std::move(path), holds);
}

}  // namespace leat::datasets
