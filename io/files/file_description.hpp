// Files on a disk, as a source that datasets hold.
#pragma once

#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <memory>
#include <string>
#include <utility>

namespace leat::io {

/// The files of a table. The table is shared with the sources it is connected to and with other datasets (subsets and
/// concatenations of this one); nobody changes it any more.
class file_description final : public source_description {
 public:
  explicit file_description(std::shared_ptr<const file_table> table) : table_(std::move(table)) {}

  [[nodiscard]] std::unique_ptr<source> connect(connector& loop) const override { return loop.connect_files(*table_); }
  [[nodiscard]] std::uint32_t files() const override { return table_->files(); }
  [[nodiscard]] bool is_read_by_the_loop() const noexcept override { return true; }
  [[nodiscard]] std::string file_name(std::uint32_t file) const override { return table_->path(file); }

  [[nodiscard]] const file_table& table() const noexcept { return *table_; }

 private:
  std::shared_ptr<const file_table> table_;
};

}  // namespace leat::io
