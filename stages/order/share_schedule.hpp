// Which of several sources gives the next row, so that each always has its share of the rows so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

/// Row after row goes to one of the sources. After any number n of rows source k, of share s, has given floor(n s) or ceil(n s).
///   source   Baruah et al., "Proportionate progress", 1996: the j-th row of a source of share s lies in [floor(j / s), ceil((j+1) / s)),
///            and giving each row to the source whose row must come first keeps to all of that. Where it stands at row n does not
///            depend on what was done longer than one row of the rarest source before: so it is found from there, not from row 0
class share_schedule {
 public:
  /// Shares are whole numbers of this together.
  static constexpr std::uint64_t whole = std::uint64_t{1} << 40;

  ///   shares   positive; rounded to whole numbers that add up to `whole`. 1 to 2^32 of them
  explicit share_schedule(std::span<const double> shares);

  /// A place in the schedule: how many rows each source has given before it.
  class position {
   public:
    [[nodiscard]] std::uint64_t row() const noexcept { return row_; }
    [[nodiscard]] std::uint64_t given(std::size_t number) const noexcept { return sources_[number].given; }
    /// Which source gives this row; and on to the next one.
    std::size_t step() noexcept;

   private:
    friend class share_schedule;
    struct source {
      std::uint64_t given = 0;
      std::uint64_t release = 0;   // floor(given / share): its next row comes no earlier
      std::uint64_t next = 0;      // floor((given + 1) / share)
      std::uint64_t rest = 0;      // of that division
      std::uint64_t quotient = 0;  // of whole / share
      std::uint64_t remainder = 0;
      std::uint64_t share = 0;

      [[nodiscard]] std::uint64_t deadline() const noexcept { return next + (rest != 0 ? 1 : 0); }
      void advance() noexcept;
    };
    std::uint64_t row_ = 0;
    std::vector<source> sources_;
  };

  /// Where the schedule stands before row n. Takes steps_max() steps.
  [[nodiscard]] position at(std::uint64_t n) const;
  /// The same from a position that is not behind row n.
  static void go_on(position& from, std::uint64_t n) noexcept {
    while (from.row_ < n) static_cast<void>(from.step());
  }
  [[nodiscard]] std::uint64_t steps_max() const noexcept { return steps_max_; }
  [[nodiscard]] std::size_t sources() const noexcept { return shares_.size(); }
  [[nodiscard]] std::uint64_t share(std::size_t source) const noexcept { return shares_[source]; }

 private:
  std::vector<std::uint64_t> shares_;
  std::uint64_t steps_max_ = 0;
};

}  // namespace leat::stages
