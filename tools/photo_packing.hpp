// JPEG photographs on their way into photo packs and back (leat pack --photos).
#pragma once

#include "datasets/write/pack.hpp"
#include "tools/rewrite_tally.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::tools {

enum class photo_form : std::uint8_t { as_they_are, fast, jpeg };

/// The name of a JPEG's member as a photo pack: "a.jpg" becomes "a.fjpg". Nothing where it is not named as a JPEG is.
[[nodiscard]] std::optional<std::string> pack_name_of(std::string_view member);
/// The way back: "a.fJPEG" becomes "a.JPEG". Nothing where it is not named as a pack is.
[[nodiscard]] std::optional<std::string> jpeg_name_of(std::string_view member);

/// Packs or unpacks photographs and keeps count. Those without a pack or, on the way back, without a JPEG stay as they are. Thread: any,
/// several at once.
class photo_packing : public rewrite_tally {
 public:
  ///   verify   unpack each pack and compare
  explicit photo_packing(photo_form to, bool verify = true) : to_(to), verify_(verify) {}

  /// The member to take another's place; nothing where it stays as it is.
  [[nodiscard]] std::optional<datasets::rewritten_member> rewrite(std::string_view member,
                                                                  std::span<const std::byte> content);

 private:
  photo_form to_;
  bool verify_;
};

}  // namespace leat::tools
