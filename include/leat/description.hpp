// Descriptions: an ordered list of keys and values that names what decides the bytes of a run. Datasets, fields and
// samplers describe themselves. A run that is resumed is compared with the description that was saved.
#pragma once

#include <leat/compiler.hpp>
#include <leat/digest.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// Keys and values of what decides bytes.
///
///     void describe(description& out) const override {
///       out.add("order", "curriculum");
///       out.add("stages", stages_);
///     }
///
/// Everything that changes a byte of some batch must change the description. What changes none (a path, a number of
/// threads) does not belong into it, so that a run may move to another machine.
///
///   keys     unique: a key that comes again gets a number, "scale", "scale.2"
///   values   text. Doubles have as many digits as tell them apart. A value of more than 256 bytes is kept as its
///            digest. Bytes that are not UTF-8 are written as \xNN
class description {
 public:
  static constexpr std::size_t value_bytes_max = 256;

  struct entry {
    std::string key;
    std::string value;
    friend bool operator==(const entry&, const entry&) = default;
  };
  /// Something that decides bytes and has no name.
  struct unnamed_part {
    std::string key;
    std::string remedy;
  };

  void add(std::string_view key, std::string_view value);
  template <std::integral Number>
  void add(std::string_view key, Number value) {
    if constexpr (std::same_as<Number, bool>) {
      add(key, std::string_view(value ? "true" : "false"));
    } else if constexpr (std::signed_integral<Number>) {
      add_signed(key, static_cast<std::int64_t>(value));
    } else {
      add_unsigned(key, static_cast<std::uint64_t>(value));
    }
  }
  void add(std::string_view key, double value);
  void add(std::string_view key, const digest& value) { add(key, std::string_view(value.hex())); }
  /// All of a part's, each key with "key." before it.
  void add(std::string_view key, const description& part);

  /// Adds something that decides bytes and has no name: a lambda without described_as(). The run can then neither be
  /// saved nor resumed.
  ///   remedy   what to do, for the end of the error: "give it a name: .described_as(\"...\")"
  void add_unnamed(std::string_view key, std::string_view remedy);

  [[nodiscard]] std::span<const entry> entries() const noexcept { return entries_; }
  [[nodiscard]] std::span<const unnamed_part> unnamed() const noexcept { return unnamed_; }

  /// Of keys and values in their order.
  [[nodiscard]] leat::digest digest() const noexcept;
  /// An object of JSON: {"format":"tar","samples":"50000"}.
  [[nodiscard]] std::string to_json() const;

  friend bool operator==(const description& a, const description& b) noexcept;

 private:
  void add_signed(std::string_view key, std::int64_t value);
  void add_unsigned(std::string_view key, std::uint64_t value);
  [[nodiscard]] std::string unique(std::string_view key) const;

  std::vector<entry> entries_;
  std::vector<unnamed_part> unnamed_;
};

}  // namespace leat
#pragma GCC visibility pop
