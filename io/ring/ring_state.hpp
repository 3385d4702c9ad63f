// What the ring's loop works on: reads and the parts of them that the kernel has, files that are open or being opened, queries of a file's status.
#pragma once

#include "base/intrusive_list.hpp"
#include "io/files/file_status.hpp"
#include "io/files/source.hpp"
#include "io/ring/file_set.hpp"
#include "io/ring/io_loop.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace leat::io::ring {

struct file_slot;

/// A read that was taken and is not done.
struct pending_read : list_hook {
  read_operation* operation = nullptr;
  file_set* set = nullptr;
  file_slot* slot = nullptr;
  intrusive_list<pending_read>* queue = nullptr;  // the one list it is in
  std::uint64_t begin = 0;  // of the range that is read: the one asked for, widened to the alignment
  std::uint64_t end = 0;
  std::uint64_t issued = 0;                                            // up to here the kernel was asked
  std::uint64_t file_end = std::numeric_limits<std::uint64_t>::max();  // where a read found it
  unsigned chunks = 0;                                                 // the kernel has
  unsigned tries = 0;
  int failure = 0;
  bool ranged = false;     // begin, end and is_whole are set
  bool is_whole = false;   // the file is expected to end where the read does
  bool cancelled = false;  // somebody asked
  bool refused = false;    // O_DIRECT was: to be read again, buffered
  bool finished = false;

  [[nodiscard]] std::uint64_t wanted_end() const noexcept { return operation->offset + operation->bytes; }
};

/// Part of a read that the kernel has. Its address is the user_data.
struct alignas(8) chunk : list_hook {
  pending_read* owner = nullptr;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::uint64_t got = 0;
  std::uint64_t asked_from = 0;  // `got` when the kernel was last asked
  std::byte* memory = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
};

/// What a slot is doing.
enum class phase : std::uint8_t { free, asking, waiting_for_status, opening, open };

/// A place for an open file. Its address + 1 is the user_data of its opening.
struct alignas(8) file_slot : list_hook {
  unsigned index = 0;
  phase now = phase::free;
  file_set* set = nullptr;
  std::uint32_t file = 0;
  file_mode mode;
  bool stale = false;     // not to be found by others any more
  bool nonblock = false;  // opened with O_NONBLOCK
  bool type_checked = false;
  bool held_by_lease =
      false;  // another process has a lease on it (fcntl(2)): only a blocking open notifies that process
  int descriptor = -1;
  unsigned users = 0;  // reads
  unsigned tries = 0;
  intrusive_list<pending_read> waiting;  // for it to be open
  intrusive_list<file_slot>* queue = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
  std::string path;
  file_status status;
};

/// open_operation with its place for the answer, which the kernel writes. Its address + 2 is the user_data.
struct alignas(8) status_query : list_hook {
  open_operation* operation = nullptr;  // null after its operation has ended, and for a query of the loop's own
  file_slot* slow = nullptr;            // for a query of the loop's own: the file whose read takes long
  file_set* set = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
  std::string path;
  file_status status;
};

enum tag : std::uint64_t { tag_chunk = 0, tag_slot = 1, tag_query = 2, tag_wake = 3, tag_none = 4, tag_mask = 7 };

/// Objects that are made once and used again.
template <class T>
class stock {
 public:
  [[nodiscard]] T& take() {
    if (spare_.empty()) {
      all_.emplace_back();
      spare_.reserve(all_.size());
      return all_.back();
    }
    T& taken = *spare_.back();
    spare_.pop_back();
    return taken;
  }
  void give_back(T& one) noexcept { spare_.push_back(&one); }
  [[nodiscard]] std::size_t out() const noexcept { return all_.size() - spare_.size(); }

 private:
  std::deque<T> all_;  // they never move
  std::vector<T*> spare_;
};

}  // namespace leat::io::ring
