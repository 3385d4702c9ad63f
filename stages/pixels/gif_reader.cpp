#include "stages/pixels/gif_reader.hpp"

#include "stages/pixels/resample_kernels.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <span>
#include <string_view>

namespace leat::pixels {
namespace {

constexpr int code_bits_max = 12;
constexpr std::size_t codes_max = std::size_t{1} << code_bits_max;

// Between two looks at `stop`: some ms.
constexpr std::size_t codes_between_looks = std::size_t{1} << 16;

// A code is what its prefix is and one pixel more.
struct code_tables {
  std::array<std::uint16_t, codes_max> prefix;
  std::array<std::uint8_t, codes_max> last;
  std::array<std::uint8_t, codes_max> backwards;  // the pixels of one code
};

// Codes of any number of bits, the lowest first, out of sub-blocks.
class code_source {
 public:
  explicit code_source(byte_span blocks) noexcept : rest_(blocks) {}

  // Nothing where the data ends.
  std::optional<std::uint32_t> next(int bits) noexcept {
    while (held_bits_ < bits) {
      if (block_left_ == 0) {
        if (rest_.empty() || byte_at(rest_, 0) == 0) return std::nullopt;
        block_left_ = byte_at(rest_, 0);
        rest_ = rest_.subspan(1);
      }
      if (rest_.empty()) return std::nullopt;
      held_ |= byte_at(rest_, 0) << held_bits_;
      held_bits_ += 8;
      rest_ = rest_.subspan(1);
      --block_left_;
    }
    const std::uint32_t code = held_ & ((1U << bits) - 1);
    held_ >>= bits;
    held_bits_ -= bits;
    return code;
  }

 private:
  byte_span rest_;
  std::uint32_t block_left_ = 0;
  std::uint32_t held_ = 0;
  int held_bits_ = 0;
};

// LZW as GIF has it: appendix F of its specification.
class pixel_decoder {
 public:
  pixel_decoder(const gif_layout& layout, code_tables& tables) noexcept
      : codes_(layout.data), tables_(tables), clear_(1U << layout.code_bits), first_bits_(layout.code_bits + 1) {
    begin();
  }

  // Fills `pixels`, and looks at `stop` meanwhile.
  stages::outcome<void> run(std::span<std::uint8_t> pixels, const std::atomic<bool>* stop) {
    std::size_t made = 0;
    for (std::size_t number = 0; made < pixels.size(); ++number) {
      if (number % codes_between_looks == 0 && stop != nullptr && stop->load(std::memory_order_relaxed)) {
        return stages::cancelled();
      }
      const std::optional<std::uint32_t> code = codes_.next(bits_);
      if (!code || *code == clear_ + 1) return stages::corrupt("GIF: premature end of the picture");
      if (*code == clear_) {
        begin();
        continue;
      }
      const std::optional<std::size_t> count = look_up(*code);
      if (!count) return stages::corrupt("GIF: damaged");
      const std::size_t taken = std::min(*count, pixels.size() - made);
      std::reverse_copy(tables_.backwards.begin() + static_cast<std::ptrdiff_t>(*count - taken),
                        tables_.backwards.begin() + static_cast<std::ptrdiff_t>(*count),
                        pixels.begin() + static_cast<std::ptrdiff_t>(made));
      made += taken;
    }
    return {};
  }

 private:
  void begin() noexcept {
    bits_ = first_bits_;
    next_ = clear_ + 2;
    has_before_ = false;
  }

  // Puts the pixels of a code into `backwards`, and adds one to the table. Returns how many they are.
  std::optional<std::size_t> look_up(std::uint32_t code) noexcept {
    std::size_t count = 0;
    std::uint32_t at = code;
    if (!has_before_) {
      if (code >= clear_) return std::nullopt;
    } else if (code == next_ && next_ < codes_max) {
      tables_.backwards[count++] = first_;
      at = before_;
    } else if (code >= next_) {
      return std::nullopt;
    }
    for (; at >= clear_; at = tables_.prefix[at]) tables_.backwards[count++] = tables_.last[at];
    tables_.backwards[count++] = first_ = static_cast<std::uint8_t>(at);
    if (has_before_ && next_ < codes_max) {
      tables_.prefix[next_] = static_cast<std::uint16_t>(before_);
      tables_.last[next_] = first_;
      if (++next_ == 1U << bits_ && bits_ < code_bits_max) ++bits_;
    }
    before_ = code;
    has_before_ = true;
    return count;
  }

  code_source codes_;
  code_tables& tables_;
  const std::uint32_t clear_;
  const int first_bits_;
  int bits_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t before_ = 0;
  bool has_before_ = false;
  std::uint8_t first_ = 0;
};

// Which of the frame's lines, as they come, is line y: every 8th, those between, every 4th and every 2nd between these.
int interlaced_line(int y, int height) noexcept {
  const auto lines = [&](int first, int step) { return height > first ? (height - first - 1) / step + 1 : 0; };
  if (y % 8 == 0) return y / 8;
  if (y % 8 == 4) return lines(0, 8) + y / 8;
  if (y % 4 == 2) return lines(0, 8) + lines(4, 8) + y / 4;
  return lines(0, 8) + lines(4, 8) + lines(2, 4) + y / 2;
}

}  // namespace

stages::outcome<void> gif_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                       const reading& how) {
  const stages::outcome<gif_layout> layout = read_gif_headers(encoded);
  if (!layout) return layout.error();
  assert(layout->width == info.width && layout->height == info.height);
  static_cast<void>(info);
  layout_ = *layout;
  stop_ = how.stop;
  background_ = layout_.transparent >= 0 ? how.background : std::nullopt;
  // A code is a byte of the table of 4,096, at most.
  if (frame_bytes() / codes_max > layout_.data.size() * 8 / static_cast<std::size_t>(layout_.code_bits + 1)) {
    return stages::corrupt("GIF is too short for its frame of " + std::to_string(layout_.frame.width) + " x " +
                           std::to_string(layout_.frame.height) + " pixels");
  }
  return {};
}

std::size_t gif_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  return scratch_arena::rounded(frame_bytes()) + scratch_arena::rounded(sizeof(code_tables)) +
         scratch_arena::rounded(rgb_line_bytes(region.width));
}

stages::outcome<void> gif_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  region_ = region;
  next_row_ = 0;
  frame_ = arena_.take_array<std::uint8_t>(frame_bytes());
  auto* const tables = arena_.take_array<code_tables>(1);
  line_ = arena_.take_array<std::uint8_t>(rgb_line_bytes(region.width));
  if (frame_ == nullptr || tables == nullptr || line_ == nullptr) {
    return stages::unsupported("GIF: out of scratch memory");
  }
  return pixel_decoder(layout_, *tables).run({frame_, frame_bytes()}, stop_);
}

stages::outcome<lines> gif_reader::read() {
  assert(next_row_ < region_.height);
  const rectangle& frame = layout_.frame;
  const int y = region_.y + next_row_++ - frame.y;
  const bool is_in_frame = y >= 0 && y < frame.height;
  const int stored = is_in_frame && layout_.interlaced ? interlaced_line(y, frame.height) : y;
  const std::uint8_t* const from =
      is_in_frame ? frame_ + static_cast<std::size_t>(stored) * static_cast<std::size_t>(frame.width) : nullptr;
  const auto beside = static_cast<std::uint8_t>(std::max(layout_.transparent, 0));
  std::uint8_t* to = line_;
  for (int i = 0; i < region_.width; ++i, to += 3) {
    const int x = region_.x + i - frame.x;
    const std::uint8_t colour = is_in_frame && x >= 0 && x < frame.width ? from[x] : beside;
    const bool is_seen = !background_ || colour != layout_.transparent;
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t at = std::size_t{colour} * 3 + c;
      // Without a palette a number is a grey; with one, a colour that it lacks is black.
      to[c] = !is_seen                      ? (*background_)[c]
              : layout_.palette.empty()     ? colour
              : at < layout_.palette.size() ? std::to_integer<std::uint8_t>(layout_.palette[at])
                                            : std::uint8_t{0};
    }
  }
  return lines{line_, 0, 1};
}

}  // namespace leat::pixels
