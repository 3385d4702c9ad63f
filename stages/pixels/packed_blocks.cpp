#include "stages/pixels/packed_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace leat::pixels {
namespace {

static_assert(std::is_trivially_destructible_v<block_pages>);
static_assert(sizeof(JBLOCK) == 128);

// Pages are taken from the arena in groups of this size, since the arena aligns each group.
constexpr std::size_t pages_at_a_time = 64;

// A packed block begins with the number of its nonzero coefficients. Each of them has a byte with the number of zeros before it
// and the kind of its value: 1, -1, or a value in the next byte or two. An empty block is a 0, and a byte with the number of
// further empty blocks.
constexpr unsigned plus_one = 0;
constexpr unsigned minus_one = 1;
constexpr unsigned one_byte = 2;
constexpr unsigned two_bytes = 3;
constexpr std::size_t block_bytes_max = 1 + 3 * DCTSIZE2;
constexpr std::size_t empty_run_max = 256;

std::uint64_t nonzero_of(const JCOEF* block) noexcept {
  std::uint64_t mask = 0;
  for (int quad = 0; quad < DCTSIZE2; quad += 4) {
    std::uint64_t four = 0;
    std::memcpy(&four, block + quad, sizeof four);
    if (four == 0) continue;
    for (int i = quad; i < quad + 4; ++i) mask |= std::uint64_t{block[i] != 0} << i;
  }
  return mask;
}

std::size_t pack_block(const JCOEF* block, std::uint64_t nonzero, std::uint8_t* to) noexcept {
  std::uint8_t* const begin = to;
  *to++ = static_cast<std::uint8_t>(std::popcount(nonzero));
  for (int next = 0; nonzero != 0; nonzero &= nonzero - 1) {
    const int at = std::countr_zero(nonzero);
    const auto zeros = static_cast<unsigned>(at - next) << 2;
    next = at + 1;
    const int value = block[at];
    if (value == 1 || value == -1) {
      *to++ = static_cast<std::uint8_t>(zeros | (value == 1 ? plus_one : minus_one));
    } else if (value >= -128 && value <= 127) {
      *to++ = static_cast<std::uint8_t>(zeros | one_byte);
      *to++ = static_cast<std::uint8_t>(value);
    } else {
      *to++ = static_cast<std::uint8_t>(zeros | two_bytes);
      *to++ = static_cast<std::uint8_t>(value);
      *to++ = static_cast<std::uint8_t>(value >> 8);
    }
  }
  return static_cast<std::size_t>(to - begin);
}

class page_reader {
 public:
  explicit page_reader(const block_pages::page* first) noexcept : page_(first), next_(first->content) {}

  std::uint8_t byte() noexcept {
    if (next_ == page_->content + sizeof page_->content) {
      page_ = page_->next;
      next_ = page_->content;
    }
    return *next_++;
  }

 private:
  const block_pages::page* page_;
  const std::uint8_t* next_;
};

}  // namespace

void block_pages::begin(scratch_arena& arena, std::size_t bytes_max) noexcept {
  arena_ = &arena;
  bytes_left_ = bytes_max;
  free_ = nullptr;
}

block_pages::page* block_pages::take() noexcept {
  if (free_ == nullptr) {
    constexpr std::size_t bytes = pages_at_a_time * page_bytes;
    if (scratch_arena::rounded(bytes) > bytes_left_) return nullptr;
    auto* const more = static_cast<page*>(arena_->take(bytes));
    if (more == nullptr) return nullptr;
    bytes_left_ -= scratch_arena::rounded(bytes);
    for (std::size_t i = 0; i < pages_at_a_time; ++i) more[i].next = i + 1 < pages_at_a_time ? more + i + 1 : nullptr;
    free_ = more;
  }
  page* const taken = free_;
  free_ = taken->next;
  taken->next = nullptr;
  return taken;
}

bool block_pages::pack(const JBLOCK* blocks, std::size_t count, page*& row) noexcept {
  while (row != nullptr) {  // Free the row's old pages first, so that the new content can use them.
    page* const next = row->next;
    row->next = free_;
    free_ = row;
    row = next;
  }
  page* last = nullptr;
  std::size_t room = 0;
  const auto put = [&](const std::uint8_t* from, std::size_t bytes) {
    while (bytes > 0) {
      if (room == 0) {
        page* const more = take();
        if (more == nullptr) return false;
        (last == nullptr ? row : last->next) = more;
        last = more;
        room = sizeof more->content;
      }
      const std::size_t some = std::min(bytes, room);
      std::memcpy(last->content + (sizeof last->content - room), from, some);
      from += some;
      bytes -= some;
      room -= some;
    }
    return true;
  };
  std::size_t empty = 0;
  const auto put_empty = [&] {
    const std::uint8_t run[2] = {0, static_cast<std::uint8_t>(empty - 1)};
    empty = 0;
    return put(run, sizeof run);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t nonzero = nonzero_of(blocks[i]);
    if (nonzero == 0) {
      if (++empty == empty_run_max && !put_empty()) return false;
      continue;
    }
    if (empty > 0 && !put_empty()) return false;
    std::uint8_t packed[block_bytes_max];
    if (!put(packed, pack_block(blocks[i], nonzero, packed))) return false;
  }
  if (last == nullptr) return true;  // all zero
  empty = empty_run_max;             // at least as many as are left; unpack() knows how many those are
  return put_empty();
}

void block_pages::unpack(const page* row, JBLOCK* blocks, std::size_t count) noexcept {
  std::memset(blocks, 0, count * sizeof(JBLOCK));
  if (row == nullptr) return;
  page_reader from(row);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned nonzero = from.byte();
    if (nonzero == 0) {
      i += from.byte();
      continue;
    }
    JCOEF* const block = blocks[i];
    for (unsigned at = 0, n = 0; n < nonzero; ++n, ++at) {
      const unsigned head = from.byte();
      at += head >> 2;
      switch (head & 3) {
        case plus_one:
          block[at] = 1;
          break;
        case minus_one:
          block[at] = -1;
          break;
        case one_byte:
          block[at] = static_cast<std::int8_t>(from.byte());
          break;
        default: {
          const unsigned low = from.byte();
          block[at] = static_cast<JCOEF>(static_cast<std::int16_t>(low | static_cast<unsigned>(from.byte()) << 8));
        }
      }
    }
  }
}

}  // namespace leat::pixels
