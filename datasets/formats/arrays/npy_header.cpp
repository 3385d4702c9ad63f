#include "datasets/formats/arrays/npy_header.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

/// Reads the literal that numpy.lib.format writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class dict_reader {
 public:
  dict_reader(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  npy_header read() {
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        descr();
      } else if (key == "fortran_order") {
        fortran_ = boolean();
      } else if (key == "shape") {
        shape();
      } else {
        fail(str_cat("the key '", printable(key), "', where only descr, fortran_order and shape are known,"));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("something after the dict");
    if (!type_) missing("descr");
    if (!fortran_) missing("fortran_order");
    if (!has_shape_) missing("shape");
    header_.type = *type_;
    // The same elements in the same places where at most one axis is longer than one.
    const auto long_axes =
        std::count_if(header_.shape.begin(), header_.shape.end(), [](std::uint64_t extent) { return extent > 1; });
    if (*fortran_ && long_axes > 1) {
      throw error(errc::unsupported, str_cat(where_,
                                             ": the array is in Fortran order, in which no row lies in one piece; save "
                                             "numpy.ascontiguousarray(a)"));
    }
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, str_cat(where_, ": the header of the .npy is damaged: ", what, " at character ", at_,
                                      " of its dict; write the file again with numpy.save()"));
  }
  [[noreturn]] void missing(const char* key) const {
    throw error(errc::format, str_cat(where_, ": the header of the .npy is damaged: it has no '", key,
                                      "'; write the file again with numpy.save()"));
  }

  static std::string printable(std::string_view text) {
    std::string shown(text.substr(0, 40));
    for (char& letter : shown) {
      if (letter < ' ' || letter > '~') letter = '?';
    }
    return shown;
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(str_cat("no '", std::string(1, wanted), "'"));
  }

  std::string string() {
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("no string");
    const char quote = text_[at_];
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string without an end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string_view::npos) fail("a string with a backslash");
    at_ = end + 1;
    return std::string(inside);
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("neither True nor False");
  }

  void shape() {
    has_shape_ = true;
    header_.shape.clear();
    expect('(');
    while (!take(')')) {
      header_.shape.push_back(extent());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::uint64_t extent() {
    skip_blanks();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (__builtin_mul_overflow(value, 10U, &value) || __builtin_add_overflow(value, digit, &value)) {
        fail("a number beyond 64 bits");
      }
      ++at_;
    }
    if (at_ == begin) fail("no number of elements");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote its long integers so.
    return value;
  }

  void descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw error(errc::unsupported,
                  str_cat(where_,
                          ": a structured dtype; save each of its fields as an array of its own "
                          "(numpy.savez), or write a.tobytes() as fixed-size records with a JSON beside them"));
    }
    const std::string code = string();
    type_ = type_of(code);
  }

  dtype type_of(const std::string& code) const {
    if (code.size() < 2) refuse(code, "is no dtype that leat knows");
    const char order = code[0];
    const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    const std::string_view kind = std::string_view(code).substr(has_order ? 1 : 0);
    if (kind.starts_with('O'))
      refuse(code, "holds Python objects, which are pickled; save numbers, one array for each");
    if (kind.starts_with('U') || kind.starts_with('S')) {
      refuse(code, "holds text; keep it in tar shards (.txt), or save numbers");
    }
    if (kind.starts_with('c')) refuse(code, "is complex; save a.view() as floats, with an axis of 2 more");
    if (kind.starts_with('V')) refuse(code, "is raw memory; save a.view() as a dtype of numbers (bf16 as uint16)");
    if (kind.starts_with('M') || kind.starts_with('m')) refuse(code, "holds times; save a.view('<i8')");
    struct known {
      std::string_view kind;
      dtype type;
    };
    constexpr known all[] = {{"b1", dtype::boolean}, {"u1", dtype::u8},  {"i1", dtype::i8},  {"u2", dtype::u16},
                             {"i2", dtype::i16},     {"u4", dtype::u32}, {"i4", dtype::i32}, {"u8", dtype::u64},
                             {"i8", dtype::i64},     {"f2", dtype::f16}, {"f4", dtype::f32}, {"f8", dtype::f64}};
    const auto* const found =
        std::find_if(std::begin(all), std::end(all), [&](const known& each) { return each.kind == kind; });
    if (found == std::end(all))
      refuse(code, "is no dtype that leat knows; save a.astype() of one that it has, as '<f4'");
    if (order == '>' && size_bytes(found->type) > 1) {
      refuse(code, "is big-endian; save a.astype(a.dtype.newbyteorder('<'))");
    }
    return found->type;
  }

  [[noreturn]] void refuse(const std::string& code, const char* why) const {
    throw error(errc::unsupported, str_cat(where_, ": the dtype '", printable(code), "' ", why));
  }

  const std::string& where_;
  std::string_view text_;
  std::size_t at_ = 0;
  npy_header header_;
  std::optional<dtype> type_;
  std::optional<bool> fortran_;
  bool has_shape_ = false;
};

[[noreturn]] void refuse_cut(const std::string& where, std::uint64_t bytes_there) {
  throw error(errc::format, str_cat(where, ": ends after ", bytes_there,
                                    " bytes, within the header of the .npy; is the copy complete?"));
}

std::uint64_t bytes_of(const npy_header& header, const std::string& where) {
  std::uint64_t bytes = size_bytes(header.type);
  for (const std::uint64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      throw error(errc::format, str_cat(where,
                                        ": the shape in the header of the .npy has more than 2^64 bytes; "
                                        "write the file again with numpy.save()"));
    }
  }
  return bytes;
}

}  // namespace

dimensions npy_header::row_shape() const {
  dimensions row;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) row.push_back(static_cast<std::int64_t>(shape[axis]));
  return row;
}

bool is_npy(std::span<const std::byte> start) noexcept {
  return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
}

npy_header parse_npy_dict(const std::string& where, std::string_view dict) { return dict_reader(where, dict).read(); }

npy_header read_npy_header(const std::string& where, std::uint64_t bytes_there, const byte_reader& read) {
  const std::vector<std::byte> start = read(0, npy_prefix_bytes);
  if (!is_npy(start)) {
    throw error(errc::format,
                str_cat(where, ": does not start as a .npy does (\\x93NUMPY); write it with numpy.save()"));
  }
  if (start.size() < 10) refuse_cut(where, bytes_there);
  const auto version = std::to_integer<unsigned>(start[6]);
  if (version < 1 || version > 3) {
    throw error(errc::unsupported, str_cat(where, ": version ", version, ".", std::to_integer<unsigned>(start[7]),
                                           " of the .npy format; leat reads 1 to 3"));
  }
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (start.size() < prefix) refuse_cut(where, bytes_there);
  const std::uint64_t dict_bytes =
      version == 1 ? number_at<std::uint16_t>(start, 8) : number_at<std::uint32_t>(start, 8);
  if (dict_bytes > npy_header_bytes_max) {
    throw error(errc::format, str_cat(where, ": the header of the .npy is ", dict_bytes,
                                      " bytes long, which is no array of numbers; write it with numpy.save()"));
  }
  const std::vector<std::byte> dict = read(prefix, dict_bytes);
  if (dict.size() < dict_bytes) refuse_cut(where, bytes_there);
  npy_header header = parse_npy_dict(where, {reinterpret_cast<const char*>(dict.data()), dict.size()});
  if (header.shape.size() > dimensions::rank_max) {
    throw error(errc::unsupported, str_cat(where, ": the array has ", header.shape.size(), " axes; leat has up to ",
                                           dimensions::rank_max, ": reshape it"));
  }
  header.data_offset = prefix + dict_bytes;
  header.data_bytes = bytes_of(header, where);
  if (header.data_bytes > bytes_there - header.data_offset) {
    throw error(errc::format,
                str_cat(where, ": ends after ", bytes_there, " bytes, before its array of ", header.data_bytes,
                        " bytes at offset ", header.data_offset, " does; is the copy complete?"));
  }
  return header;
}

npy_header read_npy_header(const std::string& where, std::span<const std::byte> file) {
  return read_npy_header(where, file.size(), [file](std::uint64_t offset, std::uint64_t bytes) {
    const std::span<const std::byte> rest = file.subspan(std::min<std::uint64_t>(offset, file.size()));
    const std::span<const std::byte> wanted = rest.first(std::min<std::uint64_t>(bytes, rest.size()));
    return std::vector<std::byte>(wanted.begin(), wanted.end());
  });
}

bool is_npy_member(std::string_view field) noexcept { return field == "npy" || field.ends_with(".npy"); }

}  // namespace leat::datasets
