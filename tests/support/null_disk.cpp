#include "tests/support/null_disk.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <utility>

namespace leat::testing {
namespace {

std::string name_of_file(std::uint32_t file) { return "null/" + std::to_string(file); }

class null_source final : public io::source {
 public:
  null_source(const null_disk_options& options, io::connector& loop) : options_(options), loop_(loop) {}
  ~null_source() override {
    assert(first_ == nullptr && first_open_ == nullptr && "every operation is done before this");
    if (destroyed_ != nullptr) *destroyed_ = true;
  }

  void start(std::span<io::read_operation* const> operations) override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto now_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    for (io::read_operation* const each : operations) {
      assert(each->file < options_.files && each->into.bytes.size() >= io::aligned_bytes(each->offset, each->bytes));
      each->started_ns = now_ns;
      each->state = nullptr;
      each->next = nullptr;
      (last_ == nullptr ? first_ : last_->next) = each;
      last_ = each;
    }
    post_turn();
  }

  void start(io::open_operation& operation) override {
    assert(operation.file < options_.files);
    operation.next = std::exchange(first_open_, &operation);
    post_turn();
  }

  void cancel(io::read_operation& operation) override { operation.state = this; }

  [[nodiscard]] error explain(const io::read_operation& operation) const override {
    return {operation.failure == ECANCELED ? errc::cancelled : errc::io,
            name_of_file(operation.file) +
                (operation.failure == ECANCELED ? ": the read was cancelled" : ": the file ends before the read does")};
  }
  [[nodiscard]] error explain(const io::open_operation& operation) const override {
    return {errc::io, name_of_file(operation.file) + ": a null disk never fails to open"};
  }

 private:
  void post_turn() {
    if (std::exchange(turn_posted_, true)) return;
    loop_.post([](void* self) noexcept { static_cast<null_source*>(self)->turn(); }, this);
  }

  void turn() {
    turn_posted_ = false;
    bool destroyed = false;
    destroyed_ = &destroyed;
    // What done() starts comes in the next turn.
    io::read_operation* const last = last_;
    while (last != nullptr && first_ != nullptr) {
      io::read_operation& operation = *first_;
      const bool is_last = &operation == last;
      first_ = operation.next;
      if (first_ == nullptr) last_ = nullptr;
      finish(operation);
      if (destroyed) return;
      if (is_last) break;
    }
    io::open_operation* open = std::exchange(first_open_, nullptr);
    while (open != nullptr) {
      io::open_operation& operation = *open;
      open = operation.next;
      operation.size_bytes = options_.file_bytes;
      operation.version = 1;
      operation.failure = 0;
      operation.done(operation);
      if (destroyed) return;
    }
    destroyed_ = nullptr;
  }

  void finish(io::read_operation& operation) {
    operation.failure = 0;
    operation.data = {};
    if (std::exchange(operation.state, nullptr) != nullptr) {
      operation.failure = ECANCELED;
    } else if (operation.offset > options_.file_bytes || operation.bytes > options_.file_bytes - operation.offset) {
      operation.failure = ENODATA;
    } else {
      operation.data = operation.into.bytes.subspan(operation.offset % io::alignment_max_bytes, operation.bytes);
      if (options_.write_zeros) std::fill(operation.into.bytes.begin(), operation.into.bytes.end(), std::byte{0});
    }
    operation.done(operation);
  }

  const null_disk_options options_;
  io::connector& loop_;
  io::read_operation* first_ = nullptr;
  io::read_operation* last_ = nullptr;
  io::open_operation* first_open_ = nullptr;
  bool turn_posted_ = false;
  bool* destroyed_ = nullptr;
};

}  // namespace

std::unique_ptr<io::source> null_disk::connect(io::connector& loop) const {
  return std::make_unique<null_source>(options_, loop);
}

std::string null_disk::file_name(std::uint32_t file) const { return name_of_file(file); }

}  // namespace leat::testing
