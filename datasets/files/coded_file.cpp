#include "datasets/files/coded_file.hpp"

#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/codecs/zstd.hpp"
#include "datasets/files/content.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t stored_piece_bytes = std::size_t{256} << 10;
constexpr std::size_t decoded_piece_bytes = std::size_t{256} << 10;

struct coded_ending {
  std::string_view ending;
  std::string_view decoded;
  stream_coding coding;
};
constexpr coded_ending coded_endings[] = {{".tgz", ".tar", stream_coding::gzip},
                                          {".tzst", ".tar", stream_coding::zstd},
                                          {".gz", "", stream_coding::gzip},
                                          {".zst", "", stream_coding::zstd},
                                          {".zstd", "", stream_coding::zstd}};

const coded_ending* ending_of(std::string_view name) noexcept {
  const auto found = std::find_if(std::begin(coded_endings), std::end(coded_endings),
                                  [&](const coded_ending& each) { return name.ends_with(each.ending); });
  return found == std::end(coded_endings) ? nullptr : found;
}

/// Bytes of a stream from an offset on, a piece at a time.
class stored_pieces {
 public:
  explicit stored_pieces(const file_bytes& file) : file_(file), memory_(stored_piece_bytes) {}

  /// What is left of the piece at hand; of the next one where nothing is. Empty at the file's end.
  [[nodiscard]] std::span<const std::byte> rest() {
    if (rest_.empty()) rest_ = std::span(memory_).first(file_.read(read_, memory_));
    return rest_;
  }
  void pass(std::size_t bytes) noexcept {
    rest_ = rest_.subspan(bytes);
    read_ += bytes;
  }
  /// Offset of what rest() begins with.
  [[nodiscard]] std::uint64_t offset() const noexcept { return read_; }

 private:
  const file_bytes& file_;
  std::vector<std::byte> memory_;
  std::span<const std::byte> rest_;
  std::uint64_t read_ = 0;
};

[[noreturn]] void refuse_frame(const std::string& path) {
  throw error(
      errc::unsupported,
      str_cat(path, ": a frame of zstd that becomes more than ", bytes_text(coded_file::frame_bytes_max),
              ": samples are read in any order, and a frame can be read from its beginning only. Write frames of "
              "some MiB: zstd -dc FILE | split -b 4M --filter='zstd -q' - > ... (or pzstd), or decompress it"));
}

}  // namespace

std::optional<stream_coding> coding_of_name(std::string_view name) noexcept {
  const coded_ending* const found = ending_of(name);
  return found == nullptr ? std::nullopt : std::optional(found->coding);
}

std::string name_decoded(std::string_view name) {
  const coded_ending* const found = ending_of(name);
  if (found == nullptr) return std::string(name);
  return str_cat(name.substr(0, name.size() - found->ending.size()), found->decoded);
}

std::uint64_t points_apart(std::uint64_t stored_bytes) noexcept {
  return stored_bytes / (coded_file::window_bytes_most / deflate_window_bytes);
}

std::uint64_t samples_least_of_coded(std::uint64_t stored_bytes) noexcept {
  constexpr std::uint64_t stored_bytes_least = std::uint64_t{16} << 20;
  return stored_bytes < stored_bytes_least ? index_cache::samples_least : 1;
}

std::vector<std::byte> start_of_coded(const file_bytes& file, stream_coding coding, std::size_t bytes) {
  const std::unique_ptr<unpacker> from = make_unpacker(coding);
  stored_pieces pieces(file);
  std::vector<std::byte> start(bytes);
  std::span<std::byte> left = start;
  while (!left.empty()) {
    const std::span<const std::byte> stored = pieces.rest();
    const unpacker::step done = from->next(stored, left);
    pieces.pass(done.read);
    left = left.subspan(done.written);
    const bool stands = done.read == 0 && done.written == 0;
    if (stands || done.where == unpacker::at::damaged || done.where == unpacker::at::behind) break;
  }
  start.resize(start.size() - left.size());
  return start;
}

// --- a stream read through ---------------------------------------------------------------------------------------------

class coded_file_reader {
 public:
  coded_file_reader(const file_bytes& file, coded_file& made, std::uint64_t stored_step,
                    const std::function<void(std::span<const std::byte>)>& each)
      : file_(file),
        made_(made),
        stored_step_(stored_step),
        each_(each),
        pieces_(file),
        decoded_(decoded_piece_bytes) {}

  void read() {
    check_start();
    const std::unique_ptr<unpacker> from = make_unpacker(made_.coding_);
    for (;;) {
      const std::span<const std::byte> stored = pieces_.rest();
      const unpacker::step done = from->next(stored, std::span(decoded_).subspan(filled_));
      pieces_.pass(done.read);
      crc_ = crc32(std::span(decoded_).subspan(filled_, done.written), crc_);
      filled_ += done.written;
      out_ += done.written;
      if (filled_ == decoded_.size()) hand_on();
      check_frame(done.where);
      if (done.where == unpacker::at::damaged) fail(from->fault());
      if (done.where == unpacker::at::behind) {
        if (out_ == 0) fail("it is none");
        made_.note_ = str_cat(made_.stored_bytes_ - pieces_.offset(), " bytes after the end of its ",
                              name_of(made_.coding_), " data are not read");
        break;
      }
      const bool can_enter = done.where == unpacker::at::boundary || done.where == unpacker::at::part_end;
      if (can_enter && is_far_enough()) add_point(*from, done.where);
      const bool stands = done.read == 0 && done.written == 0 && done.where == unpacker::at::inside;
      if (stands && !stored.empty()) fail("it does not go on");
      if (!stands || !stored.empty()) continue;
      if (from->is_inside()) {
        made_.note_ = str_cat("its ", name_of(made_.coding_), " data end early, after ", bytes_text(out_),
                              " of what they become: the file was cut, copy it again");
      }
      break;
    }
    hand_on();
    made_.own_points_.back().crc = crc_;
    made_.bytes_ = out_;
    made_.own_points_.shrink_to_fit();
    made_.own_windows_.shrink_to_fit();
  }

 private:
  void check_start() {
    const std::vector<std::byte> start = file_.read(0, content_bytes);
    if (coding_of(start) != made_.coding_) {
      const content_kind found = content_of(start);
      throw error(errc::unsupported, str_cat(file_.path(), ": no ", name_of(made_.coding_), ", as its name says",
                                             found.name.empty() ? "" : str_cat(": this is ", found.name),
                                             "; give it the name of what it is"));
    }
    made_.own_points_.push_back({});
    if (made_.coding_ != stream_coding::zstd) return;
    if (zstd_frame_bytes(start).value_or(0) > coded_file::frame_bytes_max) refuse_frame(file_.path());
  }

  void check_frame(unpacker::at where) {
    if (made_.coding_ != stream_coding::zstd) return;
    if (out_ - frame_begin_ > coded_file::frame_bytes_max) refuse_frame(file_.path());
    if (where == unpacker::at::part_end) frame_begin_ = out_;
  }

  void hand_on() {
    if (filled_ != 0) each_(std::span(decoded_).first(filled_));
    filled_ = 0;
  }

  [[nodiscard]] bool is_far_enough() const noexcept {
    const entry_point& last = made_.own_points_.back();
    return out_ - last.out >= coded_file::point_bytes_usual && pieces_.offset() - last.in >= stored_step_;
  }

  void add_point(unpacker& from, unpacker::at where) {
    made_.own_points_.back().crc = std::exchange(crc_, 0);
    entry_point added{.out = out_, .in = pieces_.offset()};
    if (where == unpacker::at::boundary) {
      added.bits = from.bits();
      added.window = static_cast<std::uint32_t>(made_.own_windows_.size() / deflate_window_bytes);
      made_.own_windows_.resize(made_.own_windows_.size() + deflate_window_bytes);
      from.copy_window(std::span(made_.own_windows_).last(deflate_window_bytes));
    }
    made_.own_points_.push_back(added);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::format, str_cat(file_.path(), ": offset ", pieces_.offset(), ": damaged ", name_of(made_.coding_),
                                      " data (", why, "); compare the file with its original"));
  }

  const file_bytes& file_;
  coded_file& made_;
  const std::uint64_t stored_step_;
  const std::function<void(std::span<const std::byte>)>& each_;
  stored_pieces pieces_;
  std::vector<std::byte> decoded_;
  std::size_t filled_ = 0;
  std::uint64_t out_ = 0;
  std::uint64_t frame_begin_ = 0;
  std::uint32_t crc_ = 0;
};

coded_file::coded_file(const file_bytes& file, stream_coding coding, std::uint64_t stored_step,
                       const std::function<void(std::span<const std::byte>)>& each)
    : coding_(coding), stored_bytes_(file.size()) {
  coded_file_reader(file, *this, stored_step, each).read();
  points_ = own_points_;
  windows_ = own_windows_;
}

coded_file::coded_file(std::shared_ptr<const mapped_index> owner, section_reader& from)
    : coding_(static_cast<stream_coding>(from.number())), owner_(std::move(owner)) {
  stored_bytes_ = from.number();
  bytes_ = from.number();
  note_ = from.text();
  points_ = from.all<entry_point>();
  windows_ = from.all<std::byte>();
  bool is_sound = (coding_ == stream_coding::gzip || coding_ == stream_coding::zstd) && !points_.empty();
  std::uint64_t out = 0;
  std::uint64_t in = 0;
  for (const entry_point& each : points_) {
    const bool has_window = each.window == entry_point::no_window ||
                            (std::uint64_t{each.window} + 1) * deflate_window_bytes <= windows_.size();
    is_sound = is_sound && has_window && each.bits < 8 && each.out >= out && each.in >= in && each.out <= bytes_ &&
               each.in <= stored_bytes_ && (each.bits == 0 || each.in > 0);
    out = each.out;
    in = each.in;
  }
  if (!is_sound || points_.front().out != 0) throw error(errc::format, "it has points that no stream has");
}

void coded_file::save(section_writer& into) const {
  into.add(static_cast<std::uint64_t>(coding_));
  into.add(stored_bytes_);
  into.add(bytes_);
  into.add(note_);
  into.add_all(points_);
  into.add_all(windows_);
}

std::span<const std::byte> coded_file::window_of(const entry_point& point) const noexcept {
  if (point.window == entry_point::no_window) return {};
  return windows_.subspan(std::size_t{point.window} * deflate_window_bytes, deflate_window_bytes);
}

std::size_t coded_file::point_before(std::uint64_t offset) const noexcept {
  const auto behind = std::upper_bound(points_.begin(), points_.end(), offset,
                                       [](std::uint64_t at, const entry_point& each) { return at < each.out; });
  return static_cast<std::size_t>(behind - points_.begin()) - 1;
}

std::uint64_t coded_file::stored_end(std::uint64_t end) const noexcept {
  const auto behind = std::lower_bound(points_.begin(), points_.end(), end,
                                       [](const entry_point& each, std::uint64_t at) { return each.out < at; });
  return behind == points_.end() ? stored_bytes_ : behind->in;
}

// --- as a file -----------------------------------------------------------------------------------------------------------

decoded_file::decoded_file(std::unique_ptr<file_bytes> stored, std::shared_ptr<const coded_file> index)
    : file_bytes(stored->path()), stored_(std::move(stored)), index_(std::move(index)) {
  set_size(index_->bytes());
}

std::size_t decoded_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset >= size()) return 0;
  into = into.first(std::min<std::uint64_t>(into.size(), size() - offset));
  const std::size_t point = index_->point_before(offset);
  if (!from_ || offset < position_ || index_->points()[point].out > position_) enter(point);
  std::array<std::byte, 4096> passed_over;
  while (position_ < offset)
    fill(std::span(passed_over).first(std::min<std::uint64_t>(passed_over.size(), offset - position_)));
  fill(into);
  return into.size();
}

void decoded_file::enter(std::size_t point) const {
  const entry_point& at = index_->points()[point];
  if (!from_) from_ = make_unpacker(index_->coding());
  stored_at_ = at.first_stored();
  held_ = stored_->read(stored_at_, stored_piece_bytes);
  stored_at_ += held_.size();
  passed_ = from_->enter(at, index_->window_of(at), held_);
  position_ = at.out;
}

void decoded_file::fill(std::span<std::byte> into) const {
  while (!into.empty()) {
    if (passed_ == held_.size()) {
      held_.resize(stored_piece_bytes);
      held_.resize(stored_->read(stored_at_, held_));
      stored_at_ += held_.size();
      passed_ = 0;
    }
    const unpacker::step done = from_->next(std::span(held_).subspan(passed_), into);
    passed_ += done.read;
    position_ += done.written;
    into = into.subspan(done.written);
    const bool stands = done.read == 0 && done.written == 0 && done.where == unpacker::at::inside;
    if (stands || done.where == unpacker::at::damaged || done.where == unpacker::at::behind) {
      from_.reset();
      throw error(errc::io, str_cat(path(), ": offset ", stored_at_, ": its ", name_of(index_->coding()),
                                    " data are others than they were when it was opened"));
    }
  }
}

// --- blocks --------------------------------------------------------------------------------------------------------------

bool coded_blocks::add(std::uint64_t begin, std::uint64_t end) {
  const auto point = static_cast<std::uint32_t>(file_->point_before(begin));
  if (!blocks_.empty() && blocks_.back().point > point) return false;
  if (blocks_.empty() || blocks_.back().point != point) {
    const bool is_last = point + 1 == file_->points().size();
    // What is between two points is verified as a whole.
    blocks_.push_back({.point = point, .end = is_last ? file_->bytes() : file_->points()[point + 1].out});
  }
  block& last = blocks_.back();
  ++last.samples;
  last.end = std::max(last.end, std::min(end, file_->bytes()));
  return true;
}

std::size_t coded_blocks::block_of(std::uint64_t begin) const noexcept {
  const auto behind = std::upper_bound(blocks_.begin(), blocks_.end(), begin,
                                       [&](std::uint64_t at, const block& each) { return at < point_of(each).out; });
  assert(behind != blocks_.begin());
  return static_cast<std::size_t>(behind - blocks_.begin()) - 1;
}

void coded_blocks::place(std::size_t number, part& of) const noexcept {
  const block& in = blocks_[number];
  of.form = part_form::value;
  of.block = number;
  of.where.offset = point_of(in).first_stored();
  of.where.stored_bytes = stored_bytes(in);
  of.where.decoded_bytes = decoded_bytes(in);
}

std::uint64_t coded_blocks::offset_in(std::size_t block, std::uint64_t offset) const noexcept {
  return offset - point_of(blocks_[block]).out;
}

std::optional<std::string> coded_blocks::expand(std::size_t number, std::span<const std::byte> stored,
                                                std::span<std::byte> decoded) const {
  const std::span<const entry_point> points = file_->points();
  std::size_t point = blocks_[number].point;
  const std::uint64_t begin = points[point].out;
  auto fault = unpack_from(file_->coding(), points[point], file_->window_of(points[point]), stored, decoded);
  if (fault) return fault;
  for (; point < points.size(); ++point) {
    const std::uint64_t end = point + 1 == points.size() ? file_->bytes() : points[point + 1].out;
    if (end - begin > decoded.size()) break;
    if (crc32(decoded.subspan(points[point].out - begin, end - points[point].out)) == points[point].crc) continue;
    return str_cat(name_of(file_->coding()), " data become other bytes than they did when the file was opened");
  }
  return std::nullopt;
}

std::uint64_t coded_blocks::stored_bytes_max() const noexcept {
  std::uint64_t most = 0;
  for (const block& each : blocks_) most = std::max(most, stored_bytes(each));
  return most;
}
std::uint64_t coded_blocks::decoded_bytes_max() const noexcept {
  std::uint64_t most = 0;
  for (const block& each : blocks_) most = std::max(most, decoded_bytes(each));
  return most;
}
std::uint64_t coded_blocks::samples_max() const noexcept {
  std::uint64_t most = 0;
  for (const block& each : blocks_) most = std::max<std::uint64_t>(most, each.samples);
  return most;
}

// inflate's state and window; a frame's window, which is no longer than the frame but for its own least, and zstd's buffers.
std::uint64_t coded_blocks::expand_bytes() const noexcept {
  constexpr std::uint64_t inflate_bytes = std::uint64_t{64} << 10;
  constexpr std::uint64_t zstd_bytes = std::uint64_t{1} << 20;
  constexpr std::uint64_t zstd_window_most = std::uint64_t{128} << 20;
  if (file_->coding() == stream_coding::gzip) return inflate_bytes;
  return zstd_bytes + std::min(zstd_window_most, std::max(decoded_bytes_max(), zstd_bytes));
}

}  // namespace leat::datasets
