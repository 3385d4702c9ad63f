#include "tests/support/memory_source.hpp"

#include "base/clock.hpp"
#include "io/files/read_error.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace leat::testing {

class connected_memory final : public io::source {
 public:
  connected_memory(const memory_source& from, io::connector& loop) : from_(from), loop_(loop) {}

  void start(std::span<io::read_operation* const> operations) override {
    for (io::read_operation* const each : operations) {
      each->started_ns = now_ns();
      each->state = nullptr;
      reads_.push_back(each);
    }
    post();
  }
  void start(io::open_operation& operation) override {
    opens_.push_back(&operation);
    post();
  }
  void cancel(io::read_operation& operation) override { operation.state = this; }

  [[nodiscard]] error explain(const io::read_operation& operation) const override {
    return io::explain_read({.failure = operation.failure,
                             .path = from_.objects_[operation.file].name,
                             .offset = operation.offset,
                             .bytes = operation.bytes,
                             .data_bytes = operation.data.size()});
  }
  [[nodiscard]] error explain(const io::open_operation& operation) const override {
    return io::explain_open(operation.failure, from_.objects_[operation.file].name);
  }

 private:
  void post() {
    if (std::exchange(posted_, true)) return;
    loop_.post([](void* self) noexcept { static_cast<connected_memory*>(self)->turn(); }, this);
  }
  // The last done() may end the source.
  void turn() {
    posted_ = false;
    const std::vector<io::read_operation*> reads = std::exchange(reads_, {});
    const std::vector<io::open_operation*> opens = std::exchange(opens_, {});
    const memory_source& from = from_;
    for (io::open_operation* const open : opens) answer(from, *open);
    for (io::read_operation* const read : reads) answer(from, *read);
  }
  static void answer(const memory_source& from, io::open_operation& open) {
    const memory_source::object& object = from.objects_[open.file];
    open.size_bytes = object.content.size();
    open.version = 1;
    open.failure = 0;
    open.done(open);
  }
  static void answer(const memory_source& from, io::read_operation& read) {
    const memory_source::object& object = from.objects_[read.file];
    const std::uint64_t begin = std::min<std::uint64_t>(read.offset, object.content.size());
    const std::uint64_t bytes = std::min<std::uint64_t>(read.bytes, object.content.size() - begin);
    read.failure = 0;
    read.data = {};
    if (read.state != nullptr) {
      read.failure = ECANCELED;
    } else {
      const auto first = object.content.begin() + static_cast<std::ptrdiff_t>(begin);
      std::copy_n(first, bytes, read.into.bytes.begin());
      read.data = read.into.bytes.first(bytes);
      if (bytes < read.bytes) read.failure = ENODATA;
    }
    read.done(read);
  }

  const memory_source& from_;
  io::connector& loop_;
  std::vector<io::read_operation*> reads_;
  std::vector<io::open_operation*> opens_;
  bool posted_ = false;
};

std::uint32_t memory_source::add(std::string name, std::vector<std::byte> content) {
  objects_.push_back({std::move(name), std::move(content)});
  return files() - 1;
}

std::uint32_t memory_source::add(std::string name, std::string_view content) {
  const auto bytes = std::as_bytes(std::span(content));
  return add(std::move(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
}

std::unique_ptr<io::source> memory_source::connect(io::connector& loop) const {
  return std::make_unique<connected_memory>(*this, loop);
}

}  // namespace leat::testing
