// What becomes of the members of a pack that are written anew on their way into it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// Thread: any, several at once.
class rewrite_tally {
 public:
  struct counts {
    std::uint64_t rewritten = 0;
    std::uint64_t bytes_before = 0;  ///< of those
    std::uint64_t bytes_after = 0;
    std::uint64_t as_they_were = 0;  ///< they are in the wanted form already
    std::uint64_t left = 0;          ///< pictures that cannot be rewritten
  };
  [[nodiscard]] counts count() const;
  /// The first of those left, by member and reason.
  [[nodiscard]] std::vector<std::string> left() const;

 protected:
  void add_rewritten(std::uint64_t bytes_before, std::uint64_t bytes_after);
  void add_as_it_was();
  void leave(std::string_view member, std::string_view why);

 private:
  mutable std::mutex mutex_;
  counts count_;
  std::vector<std::string> left_;
};

}  // namespace leat::tools
