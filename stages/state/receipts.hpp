// The file of loader_options::receipts: which rows a run has had, in the order of delivery. receipt_tree.hpp reads it.
#pragma once

#include "stages/state/receipt_row.hpp"

#include <leat/loader_state.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace leat::stages {

/// Whose rows they are.
///   described                  of what decides the run's bytes: docs/guides/ranks-and-resume.md
///   names                      a hash of some samples' names, which have the path that a shard was opened by. No root states it: the rows do
///   epochs                     0: endless
///   begin_epoch, begin_batch   where the rows begin: not at 0 where a run went on in another world
struct receipt_run {
  std::uint32_t content = content_version;
  digest described = {};
  std::uint64_t names = 0;
  std::uint64_t seed = 0;
  std::uint32_t epochs = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t begin_epoch = 0;
  std::uint64_t begin_batch = 0;

  friend bool operator==(const receipt_run&, const receipt_run&) = default;
};

/// The first bytes of the file, written at the end of an epoch and of the loader. Rows behind those that it counts came later.
///   rows, sum   how many rows there were, and the XXH3-128 over them
///   epoch       that came next
///   before      rows that the run had counted when these began: of another world, whose ranks have files of their own
struct receipt_head {
  static constexpr std::size_t bytes = 128;
  receipt_run of;
  std::uint64_t rows = 0;
  std::uint64_t before = 0;
  digest sum = {};
  std::uint32_t epoch = 0;

  /// Whether these are all rows of the run.
  [[nodiscard]] bool ended() const noexcept { return of.epochs != 0 && epoch >= of.epochs; }
};

/// Reads the head of a file.
///   throws   error{errc::format}: it is none, or is damaged; errc::unsupported: of a newer leat; errc::io
[[nodiscard]] receipt_head read_receipt_head(int file, const std::string& path);

/// Where a run goes on.
///   counted   rows, since it was begun in whatever world
///   epoch     that comes next
///   goes_on   some of them are in the file
struct receipt_place {
  std::uint64_t counted = 0;
  std::uint32_t epoch = 0;
  bool goes_on = false;
};

/// Appends rows. Those of a batch are written at once, so that a killed process has the rows of all batches that it has handed out.
///
/// Thread: one at a time.
class receipts {
 public:
  /// Writes nothing.
  receipts();
  /// Begins the file anew, or goes on behind its first rows and removes what is beyond them.
  ///   throws   error{errc::usage}: another process writes it, or it does not have the counted rows of this run. As explain_write()
  receipts(const std::string& path, const receipt_run& of, const receipt_place& from);
  receipts(receipts&&) noexcept;
  receipts& operator=(receipts&&) noexcept;
  ~receipts();

  ///   throws   as explain_write()
  void append(std::span<const receipt_row> rows);
  /// Writes the head.
  ///   epoch    that comes next
  ///   throws   as explain_write()
  void mark(std::uint32_t epoch);
  /// The same, as far as it can be written; another loader may then go on with the file. Nothing is written after it.
  void close(std::uint32_t epoch) noexcept;

 private:
  struct file;
  std::unique_ptr<file> file_;
};

}  // namespace leat::stages
