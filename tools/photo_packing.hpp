// JPEG photographs on their way into photo packs and back (leat pack --photos).
#pragma once

#include "datasets/write/pack.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

enum class photo_form : std::uint8_t { as_they_are, fast, jpeg };

/// The name of a JPEG's member as a photo pack: "a.jpg" becomes "a.fjpg". Nothing where it is not named as a JPEG is.
[[nodiscard]] std::optional<std::string> pack_name_of(std::string_view member);
/// The way back: "a.fJPEG" becomes "a.JPEG". Nothing where it is not named as a pack is.
[[nodiscard]] std::optional<std::string> jpeg_name_of(std::string_view member);

/// Packs or unpacks photographs and keeps count. Thread: any, several at once.
class photo_packing {
 public:
  struct counts {
    std::uint64_t rewritten = 0;
    std::uint64_t bytes_before = 0;  ///< of those
    std::uint64_t bytes_after = 0;
    std::uint64_t left = 0;  ///< pictures that stay as they are, for want of a pack or, on the way back, of a JPEG
  };

  ///   verify   unpack each pack and compare
  explicit photo_packing(photo_form to, bool verify = true) : to_(to), verify_(verify) {}

  /// The member to take another's place; nothing where it stays as it is.
  [[nodiscard]] std::optional<datasets::rewritten_member> rewrite(std::string_view member,
                                                                  std::span<const std::byte> content);

  [[nodiscard]] counts count() const;
  /// The first of those left, by member and reason.
  [[nodiscard]] std::vector<std::string> left() const;

 private:
  void leave(std::string_view member, std::string_view why);

  photo_form to_;
  bool verify_;
  mutable std::mutex mutex_;
  counts count_;
  std::vector<std::string> left_;
};

}  // namespace leat::tools
