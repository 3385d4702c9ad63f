#include "datasets/write/pack_zarr.hpp"

#include "base/cores_quota.hpp"
#include "base/crc32c.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "base/unfinished_folder.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/row_reader.hpp"
#include "datasets/views/shuffle.hpp"
#include "datasets/write/zarr_plan.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;

// Chunks that are read, packed and written together: many small ones, or, of larger ones, one for each thread.
constexpr std::uint64_t group_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t group_bytes_max = std::uint64_t{256} << 20;
constexpr std::uint64_t group_chunks_max = 4096;
// Reads that are made ready at once.
constexpr std::uint64_t reads_at_once = 4096;
// Between two looks at whether to stop.
constexpr std::size_t write_bytes_max = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& path, int failure, std::string_view what) {
  throw explain_write(str_cat(path, ": ", what), failure,
                      {.no_room = "make room, or pack to another disk; what was begun is removed",
                       .no_folder = "the folder that it shall lie in must exist: mkdir -p it",
                       .not_allowed = "this user may not write there",
                       .taken = "give a name that is not taken",
                       .busy = "another process is writing it: wait for it, or pack elsewhere"});
}

// A file within the folder that is not there yet for others.
class inner_file {
 public:
  explicit inner_file(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(path_, errno, "cannot be created");
  }
  inner_file(const inner_file&) = delete;
  inner_file& operator=(const inner_file&) = delete;
  ~inner_file() {
    if (fd_ >= 0) ::close(fd_);
  }

  void write(std::span<const std::byte> bytes, const std::stop_token& stop) {
    while (!bytes.empty()) {
      if (stop.stop_requested()) throw error(errc::cancelled, str_cat(path_, ": stopped; what was begun is removed"));
      const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), write_bytes_max));
      if (written < 0) {
        if (errno == EINTR) continue;
        fail(path_, errno, "cannot be written");
      }
      bytes_ += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void close() {
    // On its way to the disk while others are made; the folder is waited for at its end.
    static_cast<void>(::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE));
    if (::close(std::exchange(fd_, -1)) != 0) fail(path_, errno, "cannot be written");
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
};

// Shards grow chunk by chunk, and end with their index.
class array_writer {
 public:
  array_writer(const zarr_array_plan& array, std::string folder, const std::stop_token& stop)
      : array_(array), folder_(std::move(folder)), stop_(stop) {}

  void add(std::span<const std::byte> chunk) {
    if (!array_.is_sharded()) {
      begin(chunks_);
      file_->write(chunk, stop_);
      end();
    } else {
      if (!file_) {
        begin(chunks_ / array_.chunks_per_shard);
        index_.clear();
      }
      index_.push_back({file_->bytes(), chunk.size()});
      file_->write(chunk, stop_);
      if (index_.size() == array_.chunks_per_shard) end_shard();
    }
    ++chunks_;
  }

  /// Behind the last chunk.
  std::uint64_t finish() {
    if (file_) end_shard();
    return bytes_;
  }

 private:
  struct place {
    std::uint64_t offset = std::numeric_limits<std::uint64_t>::max();  // both: there is none
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  };

  void begin(std::uint64_t number) {
    const std::string path = str_cat(folder_, "/", zarr_chunk_key(array_, number));
    if (array_.row_shape.size() != 0 || number == 0) {
      std::error_code failure;
      fs::create_directories(folder_of(path), failure);
      if (failure) fail(folder_of(path), failure.value(), "cannot be created");
    }
    file_.emplace(path);
  }

  void end_shard() {
    index_.resize(array_.chunks_per_shard);
    const std::span<const std::byte> index = std::as_bytes(std::span(index_));
    file_->write(index, stop_);
    const std::uint32_t sum = crc32c(index);
    file_->write(std::as_bytes(std::span(&sum, 1)), stop_);
    end();
  }

  void end() {
    file_->close();
    bytes_ += file_->bytes();
    file_.reset();
  }

  const zarr_array_plan& array_;
  const std::string folder_;
  const std::stop_token& stop_;
  std::optional<inner_file> file_;
  std::vector<place> index_;
  std::uint64_t chunks_ = 0;
  std::uint64_t bytes_ = 0;
};

class zarr_packing {
 public:
  zarr_packing(const dataset& from, const std::string& out, const pack_zarr_options& options)
      : from_(from),
        options_(options),
        threads_(options.threads != 0 ? options.threads : working_cores()),
        plan_(plan_zarr(from, options)),
        folder_(out) {}

  pack_result run() {
    check_out();
    if (const int failure = folder_.open(); failure != 0) fail(folder_.temporary(), failure, "cannot be created");
    if (options_.shuffle) order_ = shuffled(from_.size(), options_.seed, "pack");
    for (const zarr_array_plan& array : plan_.arrays) reading_unchanged(*from_.model(), [&] { write(array); });
    for (const std::string& group : plan_.groups) write_json(group, zarr_group_json());
    sync();
    check_unchanged(*from_.model());
    // Last, so that what is not whole is no group.
    write_json("", zarr_group_json());
    sync();
    take_name();
    pack_result result;
    result.shards.push_back({folder_.path(), from_.size(), bytes_written_});
    result.samples = from_.size();
    return result;
  }

 private:
  struct chunk_group {
    std::vector<std::byte> rows;  // whole chunks
    std::uint64_t chunks = 0;
  };

  void check_out() const {
    const std::string& path = folder_.path();
    const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0.
    if (name.empty() || name == "." || name == "..") {
      throw error(errc::usage,
                  str_cat("OUT '", path, "': the folder gets its name when it is whole; give it one, as out.zarr"));
    }
    struct stat there{};
    if (::lstat(path.c_str(), &there) != 0) return;
    if (!S_ISDIR(there.st_mode)) {
      throw error(errc::usage, str_cat(path, ": is there, and no folder; give another name"));
    }
    std::error_code failure;
    const bool is_empty = fs::is_empty(path, failure);
    if (failure) fail(path, failure.value(), "cannot be looked at");
    if (!is_empty) refuse_taken();
  }

  [[noreturn]] void refuse_taken() const {
    throw error(errc::usage,
                str_cat(folder_.path(), ": is there already, and not empty; give another name, or remove it"));
  }

  void check_stop() const {
    if (!options_.stop.stop_requested()) return;
    throw error(errc::cancelled, str_cat(folder_.path(), ": stopped; what was begun is removed"));
  }

  [[nodiscard]] std::string place_of(const std::string& name) const {
    return name.empty() ? folder_.temporary() : str_cat(folder_.temporary(), "/", name);
  }

  void write_json(const std::string& name, const std::string& text) {
    inner_file file(place_of(name) + "/zarr.json");
    file.write(std::as_bytes(std::span(text)), options_.stop);
    file.close();
    bytes_written_ += text.size();
  }

  void write(const zarr_array_plan& array) {
    std::error_code failure;
    fs::create_directories(place_of(array.name), failure);
    if (failure) fail(place_of(array.name), failure.value(), "cannot be created");

    row_reader reader(*from_.model(), {&array.place, 1}, array.place.bytes);
    array_writer writer(array, place_of(array.name), options_.stop);
    const std::uint64_t by_threads = std::min<std::uint64_t>(threads_, group_bytes_max / array.chunk_bytes);
    const std::uint64_t chunks_at_once =
        std::clamp<std::uint64_t>(std::max(group_bytes / array.chunk_bytes, by_threads), 1, group_chunks_max);
    // The next group is read while this one is packed.
    chunk_group now;
    chunk_group next;
    read(array, reader, 0, chunks_at_once, now);
    for (std::uint64_t first = 0; now.chunks != 0; first += chunks_at_once) {
      // On this thread, later, where there is no thread to be had.
      std::future<void> reading =
          std::async(std::launch::async | std::launch::deferred,
                     [&, then = first + chunks_at_once] { read(array, reader, then, chunks_at_once, next); });
      pack(array, now, writer);
      tell(array, now.chunks);
      reading.get();
      std::swap(now, next);
    }
    bytes_written_ += writer.finish();
    write_json(array.name, zarr_array_json(array, options_.codec));
    rows_before_ += from_.size();
    bytes_before_ += from_.size() * array.place.bytes;
    rows_of_array_ = 0;
  }

  void read(const zarr_array_plan& array, row_reader& reader, std::uint64_t first_chunk, std::uint64_t chunks_at_once,
            chunk_group& into) const {
    into.chunks = first_chunk < array.chunks ? std::min(chunks_at_once, array.chunks - first_chunk) : 0;
    if (into.chunks == 0) return;
    into.rows.resize(into.chunks * array.chunk_bytes);
    const std::uint64_t begin = first_chunk * array.rows_per_chunk;
    const std::uint64_t end = std::min(begin + into.chunks * array.rows_per_chunk, array.samples);
    const std::uint64_t row_bytes = array.place.bytes;
    std::vector<std::uint64_t> samples;
    for (std::uint64_t row = begin; row < end; row += samples.size()) {
      samples.clear();
      for (std::uint64_t i = row; i < std::min(row + reads_at_once, end); ++i) {
        samples.push_back(options_.shuffle ? order_[i] : i);
      }
      reader.read(samples, std::span(into.rows).subspan((row - begin) * row_bytes, samples.size() * row_bytes),
                  options_.stop);
    }
    // Beyond the last sample a chunk has the fill value.
    const std::size_t filled = (end - begin) * row_bytes;
    std::memset(into.rows.data() + filled, 0, into.rows.size() - filled);
  }

  void pack(const zarr_array_plan& array, const chunk_group& chunks, array_writer& writer) {
    packed_.resize(chunks.chunks);
    const auto element_bytes = static_cast<std::uint32_t>(size_bytes(array.type));
    for_each_parallel(chunks.chunks, threads_, [&](std::size_t i) {
      if (options_.stop.stop_requested()) return;
      compress(packing_of(options_.codec), element_bytes,
               std::span(chunks.rows).subspan(i * array.chunk_bytes, array.chunk_bytes), packed_[i]);
    });
    check_stop();
    for (const std::vector<std::byte>& each : packed_) writer.add(each);
  }

  void tell(const zarr_array_plan& array, std::uint64_t chunks) {
    rows_of_array_ = std::min(rows_of_array_ + chunks * array.rows_per_chunk, array.samples);
    if (!options_.progress) return;
    options_.progress({.samples = (rows_before_ + rows_of_array_) / plan_.arrays.size(),
                       .samples_total = from_.size(),
                       .bytes = bytes_before_ + rows_of_array_ * array.place.bytes});
  }

  void sync() {
    check_stop();
    if (const int failure = folder_.sync(); failure != 0) fail(folder_.path(), failure, "cannot be made durable");
    check_stop();
  }

  void take_name() {
    const int failure = folder_.take_name();
    if (failure == ENOTEMPTY || failure == EEXIST) refuse_taken();
    if (failure != 0) fail(folder_.path(), failure, "cannot be given its name");
  }

  const dataset& from_;
  const pack_zarr_options& options_;
  const unsigned threads_;
  const zarr_plan plan_;
  unfinished_folder folder_;
  std::vector<std::uint64_t> order_;  // where it is shuffled
  std::vector<std::vector<std::byte>> packed_;
  std::uint64_t bytes_written_ = 0;
  std::uint64_t rows_before_ = 0;   // of arrays that are finished
  std::uint64_t bytes_before_ = 0;  // likewise
  std::uint64_t rows_of_array_ = 0;
};

}  // namespace

pack_result pack_zarr(const dataset& from, const std::string& out, const pack_zarr_options& options) {
  return zarr_packing(from, out, options).run();
}

}  // namespace leat::datasets
