// Files of one compressed stream (gzip, Zstandard), read at random by points where the stream can be entered.
#pragma once

#include "datasets/codecs/coded_stream.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The coding that a file's name promises: .gz, .tgz, .zst, .zstd, .tzst.
[[nodiscard]] std::optional<stream_coding> coding_of_name(std::string_view name) noexcept;
/// The name without that: "a.jsonl" of "a.jsonl.gz", "a.tar" of "a.tgz".
[[nodiscard]] std::string name_decoded(std::string_view name);

/// What reading a stream through has found out. Thread-safe.
class coded_file {
 public:
  /// A frame of Zstandard cannot be entered: samples in it share it as a block.
  static constexpr std::uint64_t frame_bytes_max = std::uint64_t{256} << 20;
  static constexpr std::uint64_t point_bytes_usual = std::uint64_t{1} << 20;
  /// Of the windows of all files that are opened together.
  static constexpr std::uint64_t window_bytes_most = std::uint64_t{256} << 20;

  ///   each          gets all that the stream becomes, piece by piece
  ///   stored_step   so many bytes of the stream lie between two points at least: points_apart()
  ///   throws        error{errc::format} damage, with the offset; error{errc::unsupported} a frame that is too large, or no such stream
  coded_file(const file_bytes& file, stream_coding coding, std::uint64_t stored_step,
             const std::function<void(std::span<const std::byte>)>& each);
  /// As save() wrote it.
  ///   owner   of the memory that is read from
  ///   throws  error{errc::format}
  coded_file(std::shared_ptr<const mapped_index> owner, section_reader& from);
  void save(section_writer& into) const;

  [[nodiscard]] stream_coding coding() const noexcept { return coding_; }
  [[nodiscard]] std::uint64_t stored_bytes() const noexcept { return stored_bytes_; }
  /// What it becomes.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const entry_point> points() const noexcept { return points_; }
  [[nodiscard]] std::span<const std::byte> window_of(const entry_point& point) const noexcept;
  /// The last point that is not behind this offset of what the stream becomes.
  [[nodiscard]] std::size_t point_before(std::uint64_t offset) const noexcept;
  /// Where bytes are stored that end at this offset.
  [[nodiscard]] std::uint64_t stored_end(std::uint64_t end) const noexcept;
  /// What was seen at its end: empty, or one line without the file's name.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return points_.size_bytes() + windows_.size_bytes(); }

 private:
  friend class coded_file_reader;

  stream_coding coding_;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::string note_;
  std::vector<entry_point> own_points_;
  std::vector<std::byte> own_windows_;
  std::shared_ptr<const mapped_index> owner_;
  std::span<const entry_point> points_;
  std::span<const std::byte> windows_;
};

/// How far points are apart in streams of so many bytes together, so that their windows take coded_file::window_bytes_most.
[[nodiscard]] std::uint64_t points_apart(std::uint64_t stored_bytes) noexcept;

/// Opening reads compressed files whole: from so many samples on an index of them is kept.
[[nodiscard]] std::uint64_t samples_least_of_coded(std::uint64_t stored_bytes) noexcept;

/// The first bytes of what a file becomes: fewer where it has no more, or is no such stream.
[[nodiscard]] std::vector<std::byte> start_of_coded(const file_bytes& file, stream_coding coding, std::size_t bytes);

/// What a stream becomes, as a file. Reading on costs no more than unpacking; reading elsewhere begins at the point before.
class decoded_file final : public file_bytes {
 public:
  decoded_file(std::unique_ptr<file_bytes> stored, std::shared_ptr<const coded_file> index);

  std::uint64_t version() const override { return stored_->version(); }
  [[nodiscard]] const coded_file& index() const noexcept { return *index_; }
  using file_bytes::read;
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override;

 private:
  void enter(std::size_t point) const;
  void fill(std::span<std::byte> into) const;

  std::unique_ptr<file_bytes> stored_;
  std::shared_ptr<const coded_file> index_;
  mutable std::unique_ptr<unpacker> from_;
  mutable std::uint64_t position_ = 0;  // of the next byte, in what it becomes
  mutable std::uint64_t stored_at_ = 0;
  mutable std::vector<std::byte> held_;
  mutable std::size_t passed_ = 0;  // of held_
};

/// The samples of a file in blocks: each block reaches from a point to the end of the last sample that begins before the next one.
class coded_blocks {
 public:
  explicit coded_blocks(std::shared_ptr<const coded_file> file) : file_(std::move(file)) {}

  /// The next sample lies here, in what the stream becomes.
  ///   returns   false where it begins before the last one's block does
  bool add(std::uint64_t begin, std::uint64_t end);
  void finish() { blocks_.shrink_to_fit(); }

  [[nodiscard]] const coded_file& file() const noexcept { return *file_; }
  [[nodiscard]] const std::shared_ptr<const coded_file>& shared_file() const noexcept { return file_; }
  [[nodiscard]] std::size_t size() const noexcept { return blocks_.size(); }
  /// Of a sample that begins here.
  [[nodiscard]] std::size_t block_of(std::uint64_t begin) const noexcept;
  /// Says of a part where the block lies; all but where the value lies in it.
  void place(std::size_t block, part& of) const noexcept;
  /// Where a byte of the file lies in the block.
  [[nodiscard]] std::uint64_t offset_in(std::size_t block, std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                                  std::span<std::byte> decoded) const;

  /// Of the largest one.
  [[nodiscard]] std::uint64_t stored_bytes_max() const noexcept;
  [[nodiscard]] std::uint64_t decoded_bytes_max() const noexcept;
  /// Samples of the fullest one.
  [[nodiscard]] std::uint64_t samples_max() const noexcept;
  /// Memory that expanding takes besides a block.
  [[nodiscard]] std::uint64_t expand_bytes() const noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return blocks_.capacity() * sizeof(block); }

 private:
  struct block {
    std::uint32_t point = 0;
    std::uint32_t samples = 0;
    std::uint64_t end = 0;
  };
  [[nodiscard]] const entry_point& point_of(const block& of) const noexcept { return file_->points()[of.point]; }
  [[nodiscard]] std::uint64_t decoded_bytes(const block& of) const noexcept { return of.end - point_of(of).out; }
  [[nodiscard]] std::uint64_t stored_bytes(const block& of) const noexcept {
    return file_->stored_end(of.end) - point_of(of).first_stored();
  }

  std::shared_ptr<const coded_file> file_;
  std::vector<block> blocks_;
};

}  // namespace leat::datasets
