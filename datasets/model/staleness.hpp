// Whether files are still those that were opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leat::datasets {

/// How often a model wants to be asked whether its files are still those that were opened.
enum class staleness_check : std::uint8_t {
  none,        ///< never
  epoch,       ///< with the last batch of each epoch
  batch,       ///< with batches as well, once a millisecond at most
  every_batch  ///< with each of them: files that are written in place, so that what was read may be another's bytes
};

/// With `batch`, a batch within a millisecond of one that was checked is not checked, unless it is the last of an epoch or has a corrupt
/// sample.
/// A batch is checked when all its rows are made, before its corrupt samples are reported and before it is delivered.
class staleness_facet {
 public:
  [[nodiscard]] virtual staleness_check staleness_checks() const noexcept = 0;
  /// What has changed since it was opened: one line, with the file. Nothing if nothing has. Thread: decode threads, several at
  /// once; it may block on files.
  ///   at   `batch`: checks what is checked with batches; `epoch`: checks everything
  [[nodiscard]] virtual std::optional<std::string> changed(staleness_check at) const = 0;

 protected:
  ~staleness_facet() = default;
};

}  // namespace leat::datasets
