#include "datasets/files/blocking_source.hpp"

#include "io/arena/arena.hpp"
#include "io/ring/io_threads.hpp"

#include <leat/error.hpp>
#include <leat/reader.hpp>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>
#include <optional>

namespace leat::datasets {
namespace {

struct free_memory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

}  // namespace

struct opening_loop::impl {
  explicit impl(const reader_options& options)
      : threads(options, std::make_shared<io::arena>(io::arena_options{.pages = io::huge_pages::off})) {
    // Headers, labels and single pictures are few bytes, and a shard once opened is opened again: buffered reads.
    threads.set_epoch_bytes(0);
  }
  io::io_threads threads;
};

opening_loop::opening_loop(traffic expected, std::uint32_t loops) {
  reader_options options;
  options.io_threads = loops;
  options.registered_buffers = choice::off;  // Reads go to memory outside the arena.
  if (expected == traffic::few) {
    options.backend = read_backend::preadv;
    options.preadv_threads = 1;
  }
  impl_ = std::make_unique<impl>(options);
  for (std::uint32_t k = 0; k < loops; ++k) connectors_.push_back(&impl_->threads.loop(k));
}
opening_loop::~opening_loop() = default;

void blocking_source::read(std::span<const request> requests, const std::stop_token& stop) {
  struct reading : io::set_read {
    const io::source_set* all = nullptr;
    std::unique_ptr<std::byte, free_memory> memory;
    std::optional<read_failure> why;
  };
  std::deque<reading> reads;
  std::vector<io::read_operation*> started;
  for (const request& asked : requests) {
    reading& each = reads.emplace_back();
    if (asked.into.empty()) continue;
    const std::uint64_t room = io::aligned_bytes(asked.offset, asked.into.size());
    each.memory.reset(static_cast<std::byte*>(std::aligned_alloc(io::alignment_max_bytes, room)));
    if (!each.memory) throw std::bad_alloc();
    each.source = number_;
    each.all = &all_;
    each.file = asked.file;
    each.offset = asked.offset;
    each.bytes = asked.into.size();
    each.into = {{each.memory.get(), room}, io::read_target::no_piece};
    each.ended = [](io::set_read& operation) noexcept {
      auto& read = static_cast<reading&>(operation);
      if (read.failure != 0) read.why.emplace(read.all->explain(read), io::fault_of(read));
    };
    started.push_back(&each);
  }
  all_.start(0, started);
  {
    const std::stop_callback cancelling(stop, [this] { all_.cancel_reads(); });
    all_.drain();
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (reads[i].why) throw *reads[i].why;
    std::copy(reads[i].data.begin(), reads[i].data.end(), requests[i].into.begin());
  }
}

struct blocking_source::opening : io::set_open {
  opening(const io::source_set& set, std::uint32_t number, std::uint32_t wanted) : all(set) {
    source = number;
    file = wanted;
    ended = [](io::set_open& operation) noexcept {
      auto& self = static_cast<opening&>(operation);
      if (self.failure != 0) self.why.emplace(self.all.explain(self));
    };
  }
  [[nodiscard]] file_look result() const {
    if (why) throw *why;
    return {size_bytes, version};
  }
  const io::source_set& all;
  std::optional<error> why;
};

blocking_source::file_look blocking_source::look_at(std::uint32_t file) {
  opening opened(all_, number_, file);
  all_.start(0, opened);
  all_.drain();
  return opened.result();
}

std::vector<blocking_source::file_look> blocking_source::look_at_all(std::uint32_t files) {
  std::deque<opening> opened;
  for (std::uint32_t file = 0; file < files; ++file) all_.start(0, opened.emplace_back(all_, number_, file));
  all_.drain();
  std::vector<file_look> looks;
  for (const opening& each : opened) looks.push_back(each.result());
  return looks;
}

std::vector<std::optional<blocking_source::file_look>> blocking_source::look_for(std::span<const std::uint32_t> files) {
  std::vector<std::optional<file_look>> looks;
  for (const auto& each : try_to_look(files)) {
    const error* const why = std::get_if<error>(&each);
    if (why != nullptr && !is_not_there(*why)) throw error(*why);
    looks.push_back(why != nullptr ? std::nullopt : std::optional(std::get<file_look>(each)));
  }
  return looks;
}

std::vector<std::variant<blocking_source::file_look, error>> blocking_source::try_to_look(
    std::span<const std::uint32_t> files) {
  std::deque<opening> opened;
  for (const std::uint32_t file : files) all_.start(0, opened.emplace_back(all_, number_, file));
  all_.drain();
  std::vector<std::variant<file_look, error>> looks;
  for (const opening& each : opened) {
    if (each.why) {
      looks.emplace_back(*each.why);
    } else {
      looks.emplace_back(each.result());
    }
  }
  return looks;
}

std::span<const std::byte> blocking_source::view(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes,
                                                 std::uint64_t file_bytes) {
  // The bytes behind a header are read next, or lie in the page cache by then: reading them too costs little.
  constexpr std::uint64_t buffer_bytes = 64 << 10;
  assert(bytes <= file_bytes && offset <= file_bytes - bytes);
  const bool seen = file == buffer_file_ && offset >= buffer_offset_ && offset - buffer_offset_ <= buffer_.size() &&
                    bytes <= buffer_.size() - (offset - buffer_offset_);
  if (!seen) {
    buffer_.resize(std::min(std::max(bytes, buffer_bytes), file_bytes - offset));
    buffer_file_ = file;
    buffer_offset_ = offset;
    const request all{file, offset, buffer_};
    try {
      read({&all, 1});
    } catch (...) {
      buffer_.clear();
      throw;
    }
  }
  return std::span(buffer_).subspan(offset - buffer_offset_, bytes);
}

blocking_source& blocking_sources::of(const io::source_description& description) {
  const auto known = std::find(known_.begin(), known_.end(), &description);
  if (known != known_.end()) return sources_[static_cast<std::size_t>(known - known_.begin())];
  known_.push_back(&description);
  return sources_.emplace_back(all_, all_.add(description));
}

}  // namespace leat::datasets
