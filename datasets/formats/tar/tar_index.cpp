#include "datasets/formats/tar/tar_index.hpp"

#include "base/mutex.hpp"
#include "io/reader/source_set.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

// The first read of a shard: as cheap as one block on any drive, and it shows what the shard is made of.
constexpr std::uint64_t first_buffer_bytes = 64 << 10;
constexpr std::uint64_t page_bytes = 4 << 10;
// For shards of large members: the header's page, and the next one if this much does not fit. A label behind a
// photograph and the next photograph's header then take one read a sample instead of 1.25.
constexpr std::uint64_t buffer_bytes_min = 2 << 10;
// Within this distance of a shard's end all is read: the end marker, and the zeros that fill the last record of 10 KiB.
constexpr std::uint64_t end_bytes = 12 << 10;

// Memory for one read at a time, aligned for any fallback.
class buffer_memory {
 public:
  [[nodiscard]] std::span<std::byte> of(std::uint64_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(io::alignment_max_bytes, bytes)));
      if (!memory_) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return {memory_.get(), bytes};
  }

 private:
  struct freed {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, freed> memory_;
  std::uint64_t bytes_ = 0;
};

/// The shards, of which each scan takes the next one. Thread: any.
class indexing {
 public:
  indexing(const io::source_description& shards, const tar_index_options& options)
      : shards_(shards), options_(options), indexes_(shards.files()), failed_file_(shards.files()) {}

  [[nodiscard]] const io::source_description& shards() const noexcept { return shards_; }
  [[nodiscard]] const tar_index_options& options() const noexcept { return options_; }

  /// The next shard to walk. After a failure only those before it matter: one of them may fail too, and then it is the
  /// one to report.
  [[nodiscard]] std::optional<std::uint32_t> take() noexcept {
    const std::uint32_t file = next_file_.fetch_add(1, std::memory_order_relaxed);
    return matters(file) ? std::optional(file) : std::nullopt;
  }
  [[nodiscard]] bool matters(std::uint32_t file) const noexcept {
    return file < failed_file_.load(std::memory_order_relaxed);
  }

  /// Each by the scan that has taken the file.
  void store(std::uint32_t file, shard_index index) noexcept { indexes_[file] = std::move(index); }

  void fail(std::uint32_t file, std::exception_ptr what) noexcept {
    const mutex_lock lock(mutex_);
    if (!matters(file)) return;
    failed_file_.store(file, std::memory_order_relaxed);
    failure_ = std::move(what);
  }

  /// Once all scans have ended.
  [[nodiscard]] std::vector<shard_index> finish() {
    const mutex_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return std::move(indexes_);
  }

 private:
  const io::source_description& shards_;
  const tar_index_options options_;
  std::vector<shard_index> indexes_;
  std::atomic<std::uint32_t> next_file_{0};
  std::atomic<std::uint32_t> failed_file_;  // written under the mutex
  mutex mutex_;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
};

// Walks one shard, then the next. Each operation starts where the one before it ends, on its loop's thread, so draining the
// sources waits for all shards.
class shard_scan {
 public:
  shard_scan(indexing& all, io::source_set& sources, std::size_t loop) noexcept
      : all_(all), sources_(sources), loop_(loop) {
    open_.owner = this;
    open_.ended = [](io::set_open& operation) noexcept { static_cast<open_header&>(operation).owner->opened(); };
    read_.owner = this;
    read_.ended = [](io::set_read& operation) noexcept { static_cast<read_header&>(operation).owner->have_read(); };
  }
  shard_scan(const shard_scan&) = delete;
  shard_scan& operator=(const shard_scan&) = delete;

  /// Takes the next shard, if there is one left that matters. Thread: any the first time, then the loop's.
  void begin() noexcept;
  /// Once it has ended.
  [[nodiscard]] const tar_index_report& report() const noexcept { return report_; }

 private:
  struct open_header : io::set_open {
    shard_scan* owner = nullptr;
  };
  struct read_header : io::set_read {
    shard_scan* owner = nullptr;
  };

  void opened() noexcept;
  void begin_walk();
  void have_read() noexcept;
  // Walks until bytes are wanted or the shard is done. May throw what is wrong with the shard.
  void walk_on();
  // The next index of photo packs, or the shard's end.
  void read_photos_on();
  void read(const tar_walk::wanted& wanted);
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept;
  void end_shard() noexcept;
  void fail(std::exception_ptr what) noexcept;
  // What throws inside a completion is this shard's failure.
  template <class Function>
  void guarded(const Function& function) noexcept;

  indexing& all_;
  io::source_set& sources_;
  const std::size_t loop_;
  tar_index_report report_;
  std::uint32_t file_ = 0;
  open_header open_;
  read_header read_;
  buffer_memory memory_;
  std::optional<tar_walk> walk_;
  std::optional<shard_grouper> grouper_;
  std::uint64_t members_ = 0;
  std::size_t next_photos_ = 0;
  bool reads_photos_ = false;
};

template <class Function>
void shard_scan::guarded(const Function& function) noexcept {
  try {
    function();
  } catch (...) {
    fail(std::current_exception());
  }
}

void shard_scan::begin() noexcept {
  const std::optional<std::uint32_t> file = all_.take();
  if (!file) return;
  file_ = *file;
  open_.file = file_;
  open_.failure = 0;
  guarded([&] { sources_.start(loop_, open_); });
}

void shard_scan::opened() noexcept {
  guarded([&] {
    if (open_.failure != 0) throw sources_.explain(open_);
    std::string path = all_.shards().file_name(file_);
    if (open_.size_bytes == 0) {
      throw error(errc::format, path + ": offset 0: the shard is empty, not even an archive's end; write it again");
    }
    grouper_.emplace(std::move(path), file_);
    begin_walk();
    next_photos_ = 0;
    reads_photos_ = false;
    walk_on();
  });
}

void shard_scan::begin_walk() {
  walk_.emplace(all_.shards().file_name(file_), open_.size_bytes, 0, all_.options().at_marker);
  members_ = 0;
}

void shard_scan::walk_on() {
  while (all_.matters(file_)) {
    switch (walk_->next()) {
      case tar_walk::result::member:
        grouper_->add(walk_->member());
        ++members_;
        break;
      case tar_walk::result::wants:
        read(walk_->wants());
        return;
      case tar_walk::result::end:
        if (grouper_->begins_again()) {
          begin_walk();
          break;
        }
        reads_photos_ = true;
        return read_photos_on();
    }
  }
  end_shard();
}

void shard_scan::read_photos_on() {
  if (all_.matters(file_) && next_photos_ != grouper_->photo_indexes().size()) {
    const shard_grouper::photo_index& next = grouper_->photo_indexes()[next_photos_];
    return read({next.offset, next.bytes});
  }
  shard_index done = grouper_->finish(*walk_);
  done.file_bytes = open_.size_bytes;
  all_.store(file_, std::move(done));
  end_shard();
}

// How much to read for a header; bytes around it too if members have been small on average so far.
std::uint64_t shard_scan::buffer_bytes() const noexcept {
  if (members_ == 0) return first_buffer_bytes;
  const std::uint64_t stride = walk_->position() / members_;
  return stride <= all_.options().stride_read_over_max ? all_.options().buffer_bytes_max : buffer_bytes_min;
}

void shard_scan::read(const tar_walk::wanted& wanted) {
  // Whole pages, as the drive and the page cache read them anyway.
  const std::uint64_t begin = wanted.offset / page_bytes * page_bytes;
  std::uint64_t end = wanted.offset + std::max(wanted.bytes, buffer_bytes());
  end = (end + page_bytes - 1) / page_bytes * page_bytes;
  if (end + end_bytes >= open_.size_bytes) end = open_.size_bytes;
  read_.file = file_;
  read_.offset = begin;
  read_.bytes = end - begin;
  read_.into = {memory_.of(io::aligned_bytes(begin, end - begin)), io::read_target::no_piece};
  read_.data = {};
  read_.failure = 0;
  io::read_operation* const operations[] = {&read_};
  sources_.start(loop_, operations);
  ++report_.reads;
  report_.bytes += read_.bytes;
}

void shard_scan::have_read() noexcept {
  guarded([&] {
    if (reads_photos_) {
      const shard_grouper::photo_index& next = grouper_->photo_indexes()[next_photos_++];
      if (read_.failure == 0) {
        grouper_->add_photos(next, read_.data.subspan(next.offset - read_.offset, next.bytes));
      } else {
        grouper_->note_no_photos(sources_.explain(read_).what());
      }
      return read_photos_on();
    }
    if (read_.failure != 0) throw sources_.explain(read_);
    walk_->feed(read_.offset, read_.data);
    walk_on();
  });
}

void shard_scan::end_shard() noexcept {
  report_.members += members_;
  walk_.reset();
  grouper_.reset();
  begin();
}

void shard_scan::fail(std::exception_ptr what) noexcept {
  all_.fail(file_, std::move(what));
  end_shard();
}

}  // namespace

std::vector<shard_index> index_tar_shards(const io::source_description& shards, std::span<io::connector* const> loops,
                                          const tar_index_options& options, tar_index_report* report) {
  const auto count = static_cast<std::uint32_t>(loops.size());
  const std::uint32_t scans =
      std::clamp<std::uint32_t>(options.shards_in_flight, count, std::max(count, shards.files()));
  indexing all(shards, options);
  io::source_set sources(loops);
  sources.add(shards);
  std::deque<shard_scan> running;
  for (std::uint32_t i = 0; i < scans; ++i) running.emplace_back(all, sources, i % count);
  for (shard_scan& each : running) each.begin();
  sources.drain();
  if (report != nullptr) {
    for (const shard_scan& each : running) {
      report->reads += each.report().reads;
      report->bytes += each.report().bytes;
      report->members += each.report().members;
    }
  }
  return all.finish();
}

}  // namespace leat::datasets
