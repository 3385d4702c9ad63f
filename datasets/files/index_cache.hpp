// An index that is kept between runs: what opening a source found out, in a file of its own, mapped and checksummed. The format decides
// what its sections hold; the code here knows where the file lies, whether it is whole, and how it is replaced.
//
//     header      magic, version, key, number and places of the sections, checksum of all that follows it
//     sections    bytes, each from a multiple of 8 on
#pragma once

#include "base/hasher.hpp"
#include "base/text.hpp"

#include <leat/digest.hpp>
#include <leat/error.hpp>
#include <leat/index_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct stat;

namespace leat::datasets {

/// A file as an index remembers it: its content is the same if both values are. Of an object at an address, the version that its source tells
/// stands in the place of the time.
struct file_stamp {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;

  friend bool operator==(const file_stamp&, const file_stamp&) = default;
};
[[nodiscard]] file_stamp stamp_of(const struct stat& status) noexcept;

/// Adds paths and addresses as they are given, and the directory that relative ones start from.
void add_paths(hasher& key, std::span<const std::string> paths);

/// Numbers, texts and arrays one after the other, each from a multiple of 8 on.
class section_writer {
 public:
  void add(std::uint64_t number);
  void add(std::string_view text);
  template <class T>
  void add_all(std::span<const T> values) {
    add(values.size());
    append(std::as_bytes(values));
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  void append(std::span<const std::byte> more);
  std::vector<std::byte> bytes_;
};

/// Reads the same values in the same order. Throws error{errc::format} if they do not fit.
class section_reader {
 public:
  explicit section_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string_view text();
  /// In place, as long as the index is mapped.
  template <class T>
  [[nodiscard]] std::span<const T> all() {
    static_assert(alignof(T) <= 8 && std::is_trivially_copyable_v<T>);
    const std::uint64_t count = number();
    if (count > rest_.size() / sizeof(T)) refuse();
    const std::span<const std::byte> bytes = take(count * sizeof(T));
    return {reinterpret_cast<const T*>(bytes.data()), static_cast<std::size_t>(count)};
  }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t bytes);
  [[noreturn]] static void refuse();
  std::span<const std::byte> rest_;
};

/// A file's content, mapped. It stays what it was when the file is replaced or removed.
class mapped_index {
 public:
  mapped_index(const std::byte* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  mapped_index(const mapped_index&) = delete;
  mapped_index& operator=(const mapped_index&) = delete;
  ~mapped_index();
  /// What follows the header.
  [[nodiscard]] std::span<const std::byte> content() const noexcept;

 private:
  const std::byte* data_;
  std::size_t bytes_;
};

/// Where the index of one source is kept, and what is to be done with it.
class index_cache {
 public:
  /// Files with fewer samples get no index unless the user names a directory: opening them again takes hardly any time.
  static constexpr std::uint64_t samples_least = 10'000;

  ///   key     of what is indexed and how: the format, its options, the paths
  ///   least   samples that are worth an index
  index_cache(const index_options& options, std::string source, const digest& key, std::uint64_t least = samples_least);

  /// Whether it is neither read nor written.
  [[nodiscard]] bool is_off() const noexcept { return use_ == index_use::off; }

  /// Whether there is a file that may be it.
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] bool is_trusted() const noexcept { return use_ == index_use::trust; }

  /// The result of `read(index, section_reader)`, if there is a whole index of this key and version; null otherwise.
  /// If `read` calls refuse() or throws an error about the content, the index is built anew.
  template <class Read>
  [[nodiscard]] auto use(const Read& read)
      -> decltype(read(std::shared_ptr<const mapped_index>(), std::declval<section_reader&>())) {
    const std::shared_ptr<const mapped_index> found = find();
    if (!found) return nullptr;
    try {
      section_reader from(found->content());
      auto model = read(found, from);
      if (model) tell_used();
      return model;
    } catch (const error& damage) {
      refuse(str_cat("the index cannot be used: ", damage.what()));
      return nullptr;
    }
  }
  /// The index that was found does not match what is there now.
  void refuse(std::string why) { why_ = std::move(why); }

  /// Whether write() would write the index of so many samples.
  [[nodiscard]] bool is_written(std::uint64_t samples) const noexcept {
    return !path_.empty() && left_out_.empty() && (is_named_ || samples >= least_);
  }
  /// Notes the time of modification of a file or directory of the source. If it is so recent that a later change may get the same
  /// time from the file system's clock, no index is written.
  void saw(std::int64_t modified_ns) noexcept { newest_ns_ = std::max(newest_ns_, modified_ns); }

  /// No index of this source can be trusted later: none is written.
  void leave_out(std::string why) { left_out_ = std::move(why); }

  /// Replaces the index, if one is to be written, and reports the outcome. An index that cannot be written is no failure.
  void write(std::uint64_t samples, std::span<const std::byte> content);

 private:
  [[nodiscard]] std::shared_ptr<const mapped_index> find();
  void tell_used() const;
  void tell(index_report::outcome what, std::string why) const;

  index_use use_;
  bool is_named_;         // the directory
  std::string left_out_;  // why; empty: it is not
  std::uint64_t least_;
  std::string source_;
  digest key_;
  std::string path_;  // empty: there is no place for it
  std::string why_;
  std::int64_t began_ns_;  // wall clock
  std::int64_t newest_ns_ = std::numeric_limits<std::int64_t>::min();
  std::function<void(const index_report&)> on_report_;
};

}  // namespace leat::datasets
