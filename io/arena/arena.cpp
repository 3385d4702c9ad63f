#include "io/arena/arena.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace leat::io {
namespace {

constexpr std::size_t page_bytes = 4096;  // the least that a system has
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
// One region for each pool; each may leave most of its last piece unused.
constexpr std::uint32_t regions_max = 16;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// What this system maps and protects in: 4 KiB on x86-64, up to 64 KiB on AArch64.
std::size_t system_page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint32_t count_pieces(std::size_t bytes) {
  return static_cast<std::uint32_t>(round_up(bytes, arena::piece_bytes) / arena::piece_bytes);
}

/// Why huge pages were refused, as far as the system says.
std::string why_no_huge_pages() {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  if (!std::getline(setting, line)) return "this kernel has no transparent huge pages";
  if (line.find("[never]") != std::string::npos) {
    return "transparent huge pages are off; try `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`";
  }
  if (::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) return "prctl(PR_SET_THP_DISABLE) is in force for this process";
  return "the kernel found no free huge pages (fragmented memory); try `echo 1 > /proc/sys/vm/compact_memory`";
}

struct pages_found {
  std::size_t bytes_resident = 0;
  std::size_t bytes_huge = 0;
};

/// Rss and AnonHugePages of all that lies in `mappings`. These stand between guard pages, so none of the kernel's areas reaches beyond one.
/// Read once, and not beyond the last: the kernel walks what it tells of.
pages_found pages_in(std::span<const std::span<const std::byte>> mappings) {
  std::ifstream maps("/proc/self/smaps");
  const auto begin_of = [](std::span<const std::byte> each) { return reinterpret_cast<std::uintptr_t>(each.data()); };
  std::uintptr_t end_of_all = 0;
  for (const auto each : mappings) end_of_all = std::max(end_of_all, begin_of(each) + each.size());
  pages_found found;
  bool inside = false;
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long begin = 0;
    unsigned long end = 0;
    std::size_t kib = 0;
    // Names of fields begin with a capital, areas with a number in small letters.
    if (const bool is_field = !line.empty() && line[0] >= 'A' && line[0] <= 'Z'; is_field && !inside) continue;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      if (begin >= end_of_all) break;
      inside = std::ranges::any_of(
          mappings, [&](auto each) { return begin >= begin_of(each) && end <= begin_of(each) + each.size(); });
    } else if (std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) {
      found.bytes_resident += kib * 1024;
    } else if (std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1) {
      found.bytes_huge += kib * 1024;
    }
  }
  return found;
}

}  // namespace

arena::arena(arena_options options)
    : options_(std::move(options)),
      pieces_max_(count_pieces(options_.bytes_max) + regions_max),
      pieces_(std::make_unique<piece_entry[]>(pieces_max_)) {}

arena::~arena() {
  // A child of fork() never had this memory, and may have other things at its address by now.
  if (forked_.in_child()) return;
  for (const mapping& mapped : mappings_) {
    if (!is_given_up({mapped.begin, mapped.bytes})) ::munmap(mapped.begin, mapped.bytes);
  }
}

void arena::give_up(std::span<const std::byte> part) {
  const mutex_lock lock(mutex_);
  given_up_.push_back(part);
  some_given_up_.store(true, std::memory_order_release);
}

bool arena::is_given_up(std::span<const std::byte> part) const noexcept {
  if (!some_given_up_.load(std::memory_order_acquire)) return false;
  const mutex_lock lock(mutex_);
  return std::any_of(given_up_.begin(), given_up_.end(), [&](std::span<const std::byte> lost) {
    return lost.data() < part.data() + part.size() && part.data() < lost.data() + lost.size();
  });
}

arena::region arena::reserve(std::size_t bytes, bool pinned_first) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), page_bytes);
  const std::uint32_t pieces = count_pieces(bytes);
  const mutex_lock lock(mutex_);
  if (bytes > round_up(options_.bytes_max, page_bytes) - reserved_ || pieces > pieces_max_ - pieces_reserved_) {
    throw error(errc::limit, str_cat("an arena of ", options_.bytes_max, " bytes with ", reserved_,
                                     " bytes given out has no room for ", bytes, "; give it more"));
  }

  // Room to begin on a multiple of the piece, and a guard page on each side: who runs over faults at once, and the
  // kernel never joins our memory with a neighbour's.
  const std::size_t guard_bytes = system_page_bytes();
  const std::size_t mapped_bytes = guard_bytes + piece_bytes + round_up(bytes, guard_bytes) + guard_bytes;
  void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw error(errc::limit, str_cat("mmap of ", mapped_bytes, " bytes: ", std::strerror(errno),
                                     "; ask for less memory, or raise `ulimit -v`"));
  }
  auto* const first = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(first) + guard_bytes;
  std::byte* const begin = first + guard_bytes + (round_up(address, piece_bytes) - address);
  if (::mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int failure = errno;
    ::munmap(mapped, mapped_bytes);
    throw error(errc::limit, str_cat("memory of ", bytes, " bytes: ", std::strerror(failure),
                                     "; ask for less, or see vm.overcommit_memory in sysctl(8)"));
  }
  // Neither may be there (an old kernel, a sandbox); the report says what came of it.
  ::madvise(begin, bytes, options_.pages == huge_pages::off ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  ::madvise(begin, bytes, MADV_DONTFORK);
  prefer_node({begin, bytes});

  mappings_.push_back({first, mapped_bytes});
  const region reserved{{begin, bytes}, pieces_reserved_};
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::size_t offset = std::size_t{i} * piece_bytes;
    piece_entry& entry = pieces_[pieces_reserved_ + i];
    entry.memory = reserved.bytes.subspan(offset, std::min(piece_bytes, bytes - offset));
    entry.in = {entry.memory, pieces_reserved_ + i};
    if (pinned_first) entry.bytes_to_pin.store(static_cast<std::uint32_t>(entry.memory.size()));
  }
  if (pinned_first) pins_first_.store(true, std::memory_order_relaxed);
  reserved_ += bytes;
  pieces_reserved_ += pieces;
  return reserved;
}

// Before a page of it is touched. Containers without CAP_SYS_NICE answer EPERM, kernels without NUMA ENOSYS.
void arena::prefer_node(std::span<std::byte> memory) noexcept {
  if (!options_.node) return;
  constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 1024 / word_bits> nodes{};  // as many as a kernel can have
  if (*options_.node >= nodes.size() * word_bits) {
    node_failure_.store(EINVAL, std::memory_order_relaxed);
    return;
  }
  nodes[*options_.node / word_bits] = 1UL << (*options_.node % word_bits);
  // One more than there are bits, which the kernel takes off again, mbind(2).
  const long failed = ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, nodes.data(),
                                nodes.size() * word_bits + 1, 0U);
  if (failed != 0) node_failure_.store(errno, std::memory_order_relaxed);
}

void arena::populate(const region& whole, std::span<const std::byte> part, bool first_touch) {
  while (populate_next(whole, part, first_touch)) {
  }
}

bool arena::claim(piece_entry& entry) noexcept {
  state now = state::untouched;
  return entry.now.compare_exchange_strong(now, state::populating, std::memory_order_acquire);
}

void arena::settle(piece_entry& entry, state now) noexcept {
  entry.now.store(now, std::memory_order_release);
  entry.now.notify_all();
}

bool arena::populate_next(const region& whole, std::span<const std::byte> part, bool first_touch) {
  assert(!part.empty() && part.data() >= whole.bytes.data());
  const auto offset = static_cast<std::size_t>(part.data() - whole.bytes.data());
  const std::size_t first = offset / piece_bytes;
  const std::size_t last = (offset + part.size() - 1) / piece_bytes;
  for (std::size_t i = first; i <= last; ++i) {
    piece_entry& entry = pieces_[whole.first_piece + i];
    for (;;) {
      const state now = entry.now.load(std::memory_order_acquire);
      if (now == state::ready) break;
      if (now == state::populating) {
        entry.now.wait(now, std::memory_order_acquire);
        continue;
      }
      if (!claim(entry)) continue;
      try {
        fault_in(entry.memory, first_touch);
      } catch (...) {
        settle(entry, state::untouched);
        throw;
      }
      settle(entry, state::ready);
      return true;
    }
  }
  return false;
}

void arena::populate_as_one(const region& whole, std::span<const std::byte> part) {
  const auto offset = static_cast<std::size_t>(part.data() - whole.bytes.data());
  const std::size_t last = (offset + part.size() - 1) / piece_bytes;
  const auto entry_of = [&](std::size_t i) -> piece_entry& { return pieces_[whole.first_piece + i]; };
  for (std::size_t i = offset / piece_bytes; i <= last;) {
    std::size_t end = i;
    while (end <= last && end - i < buffer_bytes_max / piece_bytes && claim(entry_of(end))) ++end;
    if (end == i) {  // Another thread has populated it.
      const std::span<std::byte> one = entry_of(i++).memory;
      populate(whole, one);
      continue;
    }
    std::byte* const begin = entry_of(i).memory.data();
    const std::span<std::byte> last_memory = entry_of(end - 1).memory;
    const std::span<std::byte> memory{begin, last_memory.data() + last_memory.size()};
    try {
      fault_in(memory, false);
    } catch (...) {
      for (; i < end; ++i) settle(entry_of(i), state::untouched);
      throw;
    }
    const auto first_piece = static_cast<std::uint32_t>(whole.first_piece + i);
    for (; i < end; ++i) {
      entry_of(i).in = {memory, first_piece};
      settle(entry_of(i), state::ready);
    }
  }
}

void arena::pinning_done(const region& whole, std::span<const std::byte> part) noexcept {
  while (!part.empty()) {
    const std::size_t bytes = std::min(part.size(), bytes_to_piece_end(part.data()));
    piece_entry& entry = pieces_[piece_at(part.data(), whole.bytes.data(), whole.first_piece)];
    [[maybe_unused]] const std::uint32_t before =
        entry.bytes_to_pin.fetch_sub(static_cast<std::uint32_t>(bytes), std::memory_order_release);
    assert(before >= bytes);
    part = part.subspan(bytes);
  }
}

void arena::fault_in(std::span<std::byte> memory, bool first_touch) {
  if (first_touch && options_.pages != huge_pages::on) {
    populated_.fetch_add(memory.size(), std::memory_order_relaxed);
    return;
  }
  int result = 0;
  do {
    result = ::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  if (result != 0 && errno == EINVAL) {  // before Linux 5.14
    for (std::size_t i = 0; i < memory.size(); i += page_bytes) {
      *static_cast<volatile std::byte*>(memory.data() + i) = std::byte{0};
    }
  } else if (result != 0) {
    throw error(errc::limit, str_cat("faulting in ", memory.size(), " bytes: ", std::strerror(errno),
                                     "; the machine or its cgroup is out of memory: lower the memory budget"));
  }
  populated_.fetch_add(memory.size(), std::memory_order_relaxed);
  if (options_.pages == huge_pages::on) {
    const page_report got = report();
    // The last piece of a region need not end on a huge page.
    if (got.bytes_huge + memory.size() % huge_page_bytes < got.bytes_resident / huge_page_bytes * huge_page_bytes) {
      throw error(errc::unsupported, str_cat("huge_pages = on, and of ", got.bytes_resident, " bytes only ",
                                             got.bytes_huge, " are in huge pages: ", why_no_huge_pages()));
    }
  }
}

std::span<std::byte> arena::piece(std::uint32_t number) const noexcept {
  if (number >= pieces_max_) return {};
  const piece_entry& entry = pieces_[number];
  return entry.now.load(std::memory_order_acquire) == state::ready ? entry.memory : std::span<std::byte>();
}

arena::buffer arena::buffer_of(std::uint32_t number) const noexcept {
  if (number >= pieces_max_) return {};
  const piece_entry& entry = pieces_[number];
  return entry.now.load(std::memory_order_acquire) == state::ready ? entry.in : buffer{};
}

arena::page_report arena::report() const {
  std::vector<std::span<const std::byte>> mappings;
  {
    const mutex_lock lock(mutex_);
    for (const mapping& each : mappings_) mappings.emplace_back(each.begin, each.bytes);
  }
  const pages_found found = pages_in(mappings);
  page_report made{.bytes_resident = found.bytes_resident, .bytes_huge = found.bytes_huge, .pages = {}};
  if (options_.pages == huge_pages::off) {
    made.pages = {"off", "asked for"};
  } else if (made.bytes_resident == 0) {
    made.pages = {"on", "asked for; no memory was needed yet"};
  } else if (made.bytes_huge == 0) {
    made.pages = {"off", why_no_huge_pages()};
  } else if (made.bytes_huge + mappings.size() * huge_page_bytes < made.bytes_resident) {
    made.pages = {"partly",
                  str_cat(made.bytes_huge >> 20, " of ", made.bytes_resident >> 20, " MiB: ", why_no_huge_pages())};
  } else {
    made.pages = {"on", str_cat(made.bytes_huge >> 20, " MiB")};
  }
  return made;
}

}  // namespace leat::io
