// A source of files on a loop: the handle that its users hold.
#pragma once

#include "io/files/source.hpp"
#include "io/ring/file_set.hpp"

#include <cassert>
#include <memory>
#include <span>
#include <utility>

namespace leat::io {

///   Loop   start(file_set&, ...), cancel(read_operation&), retire_set(unique_ptr<file_set>), context()
template <class Loop>
class file_source final : public source {
 public:
  file_source(Loop& loop, std::unique_ptr<file_set> set) : loop_(loop), set_(std::move(set)) {}
  ~file_source() override {
    assert(set_->operations == 0 && "a source is destroyed while operations are under way");
    loop_.retire_set(std::move(set_));
  }

  void start(std::span<read_operation* const> operations) override { loop_.start(*set_, operations); }
  void start(open_operation& operation) override { loop_.start(*set_, operation); }
  void cancel(read_operation& operation) override { loop_.cancel(operation); }

  [[nodiscard]] error explain(const read_operation& failed) const override {
    return io::explain(*set_, failed, loop_.context());
  }
  [[nodiscard]] error explain(const open_operation& failed) const override {
    return io::explain(*set_, failed, loop_.context());
  }

 private:
  Loop& loop_;
  std::unique_ptr<file_set> set_;
};

}  // namespace leat::io
