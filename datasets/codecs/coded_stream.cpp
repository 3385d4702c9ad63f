#include "datasets/codecs/coded_stream.hpp"

#include "base/text.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <new>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::byte gzip_magic{0x1f};

uInt at_most(std::size_t bytes) noexcept {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

class gzip_unpacker final : public unpacker {
 public:
  gzip_unpacker() {
    if (::inflateInit2(&stream_, with_gzip) != Z_OK) throw std::bad_alloc();
  }
  ~gzip_unpacker() override { ::inflateEnd(&stream_); }

  step next(std::span<const std::byte> stored, std::span<std::byte> to) override {
    step done;
    if (trailer_left_ != 0) return pass_trailer(stored, done);
    if (state_ == state::between) {
      if (done.read == stored.size()) return done;
      if (stored[done.read] != gzip_magic) {
        done.where = at::behind;
        return done;
      }
      ::inflateReset2(&stream_, with_gzip);
      state_ = state::member;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + done.read));
    stream_.avail_in = at_most(stored.size() - done.read);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = at_most(to.size());
    const uInt in_before = stream_.avail_in;
    const uInt out_before = stream_.avail_out;
    const int result = ::inflate(&stream_, Z_BLOCK);
    done.read += in_before - stream_.avail_in;
    done.written = out_before - stream_.avail_out;
    if (result == Z_STREAM_END) {
      const bool is_bare = std::exchange(state_, state::between) == state::bare;
      done.where = at::part_end;
      if (!is_bare) return done;
      trailer_left_ = trailer_bytes;
      return pass_trailer(stored, done);
    }
    if (result == Z_OK || result == Z_BUF_ERROR) {
      constexpr int block_end = 128;
      constexpr int last_block = 64;
      const bool is_boundary = (stream_.data_type & (block_end | last_block)) == block_end;
      if (is_boundary && result == Z_OK) done.where = at::boundary;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else {
      done.where = at::damaged;
      fault_ = stream_.msg != nullptr ? stream_.msg : "it asks for a dictionary";
    }
    return done;
  }

  bool is_inside() const noexcept override { return state_ != state::between || trailer_left_ != 0; }
  std::uint32_t bits() const noexcept override { return static_cast<std::uint32_t>(stream_.data_type) & 7U; }
  void copy_window(std::span<std::byte> to) override {
    assert(to.size() == deflate_window_bytes);
    std::array<Bytef, deflate_window_bytes> window{};
    uInt bytes = 0;
    ::inflateGetDictionary(&stream_, window.data(), &bytes);
    const auto zeros = static_cast<std::ptrdiff_t>(to.size() - bytes);
    std::fill(to.begin(), to.begin() + zeros, std::byte{0});
    std::transform(window.begin(), window.begin() + bytes, to.begin() + zeros,
                   [](Bytef each) { return std::byte{each}; });
  }

  std::size_t enter(const entry_point& point, std::span<const std::byte> window,
                    std::span<const std::byte> stored) override {
    trailer_left_ = 0;
    if (point.window == entry_point::no_window) {
      state_ = state::between;
      return 0;
    }
    state_ = state::bare;
    ::inflateReset2(&stream_, -MAX_WBITS);
    std::size_t passed = 0;
    if (point.bits != 0 && !stored.empty()) {
      ::inflatePrime(&stream_, static_cast<int>(point.bits), std::to_integer<int>(stored.front()) >> (8 - point.bits));
      passed = 1;
    }
    ::inflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(window.data()), at_most(window.size()));
    return passed;
  }

 private:
  static constexpr int with_gzip = MAX_WBITS + 16;
  static constexpr std::uint32_t trailer_bytes = 8;
  enum class state : std::uint8_t {
    between,  // members
    member,   // which zlib verifies
    bare      // entered in the middle: what comes behind it is passed over
  };

  step pass_trailer(std::span<const std::byte> stored, step done) noexcept {
    const auto passed = static_cast<std::uint32_t>(std::min<std::size_t>(trailer_left_, stored.size() - done.read));
    trailer_left_ -= passed;
    done.read += passed;
    done.where = trailer_left_ == 0 ? at::part_end : at::inside;
    return done;
  }

  z_stream stream_{};
  state state_ = state::between;
  std::uint32_t trailer_left_ = 0;
};

class zstd_unpacker final : public unpacker {
 public:
  zstd_unpacker() : context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }

  step next(std::span<const std::byte> stored, std::span<std::byte> to) override {
    if (stored.empty() && !is_inside_) return {};
    ZSTD_inBuffer from{stored.data(), stored.size(), 0};
    ZSTD_outBuffer into{to.data(), to.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_.get(), &into, &from);
    step done{.read = from.pos, .written = into.pos};
    if (ZSTD_isError(left) != 0) {
      done.where = ZSTD_getErrorCode(left) == ZSTD_error_prefix_unknown ? at::behind : at::damaged;
      fault_ = ZSTD_getErrorName(left);
      return done;
    }
    is_inside_ = left != 0;
    if (left == 0) done.where = at::part_end;
    return done;
  }
  bool is_inside() const noexcept override { return is_inside_; }

  std::size_t enter(const entry_point&, std::span<const std::byte>, std::span<const std::byte>) override {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    is_inside_ = false;
    return 0;
  }

 private:
  struct freed {
    void operator()(ZSTD_DCtx* one) const noexcept { ZSTD_freeDCtx(one); }
  };
  std::unique_ptr<ZSTD_DCtx, freed> context_;
  bool is_inside_ = false;
};

}  // namespace

std::string_view name_of(stream_coding what) noexcept { return what == stream_coding::gzip ? "gzip" : "zstd"; }

std::optional<stream_coding> coding_of(std::span<const std::byte> start) noexcept {
  const auto begins = [&](std::initializer_list<unsigned char> magic) {
    return start.size() >= magic.size() && std::equal(magic.begin(), magic.end(), start.begin(),
                                                      [](unsigned char a, std::byte b) { return std::byte{a} == b; });
  };
  if (begins({0x1f, 0x8b})) return stream_coding::gzip;
  if (begins({0x28, 0xb5, 0x2f, 0xfd})) return stream_coding::zstd;
  // A frame that is skipped, as pzstd writes before each other one.
  const bool is_skipped = start.size() >= 4 && (start[0] & std::byte{0xf0}) == std::byte{0x50} &&
                          start[1] == std::byte{0x2a} && start[2] == std::byte{0x4d} && start[3] == std::byte{0x18};
  if (is_skipped) return stream_coding::zstd;
  return std::nullopt;
}

std::unique_ptr<unpacker> make_unpacker(stream_coding what) {
  if (what == stream_coding::gzip) return std::make_unique<gzip_unpacker>();
  return std::make_unique<zstd_unpacker>();
}

std::optional<std::string> unpack_from(stream_coding what, const entry_point& point, std::span<const std::byte> window,
                                       std::span<const std::byte> stored, std::span<std::byte> to) {
  const std::unique_ptr<unpacker> from = make_unpacker(what);
  stored = stored.subspan(from->enter(point, window, stored));
  const std::size_t wanted = to.size();
  while (!to.empty()) {
    const unpacker::step done = from->next(stored, to);
    stored = stored.subspan(done.read);
    to = to.subspan(done.written);
    if (done.where == unpacker::at::damaged) return str_cat("damaged ", name_of(what), " data: ", from->fault());
    const bool stands = done.read == 0 && done.written == 0 && done.where == unpacker::at::inside;
    if (stands || done.where == unpacker::at::behind) {
      return str_cat(name_of(what), " data become ", wanted - to.size(), " bytes where ", wanted, " were expected");
    }
  }
  return std::nullopt;
}

}  // namespace leat::datasets
