#include "io/remote/file_mapping.hpp"

#include <sys/mman.h>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace leat::io {
namespace {

/// By begin, their ends. A lock that spins, since the handler takes it: of what holds it nothing touches a mapping.
class known_mappings {
 public:
  void add(std::uintptr_t begin, std::uintptr_t end) {
    const held lock(taken_);
    ends_[begin] = end;
  }
  void remove(std::uintptr_t begin) {
    const held lock(taken_);
    ends_.erase(begin);
  }
  [[nodiscard]] bool has(std::uintptr_t place) {
    const held lock(taken_);
    const auto after = ends_.upper_bound(place);
    return after != ends_.begin() && place < std::prev(after)->second;
  }
  /// Around fork(): a child has no thread that would give it back.
  void hold() {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void let_go() { taken_.clear(std::memory_order_release); }

 private:
  struct held {
    explicit held(std::atomic_flag& of) : taken(of) {
      while (taken.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~held() { taken.clear(std::memory_order_release); }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    std::atomic_flag& taken;
  };
  std::atomic_flag taken_;
  std::map<std::uintptr_t, std::uintptr_t> ends_;
};

known_mappings& mappings() {
  static auto* const all = new known_mappings;  // for as long as a handler may ask
  return *all;
}

struct sigaction handler_before;

bool put_zeros_at(void* place) {
  static const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto page = reinterpret_cast<std::uintptr_t>(place) & ~(page_bytes - 1);
  if (!mappings().has(page)) return false;
  constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return ::mmap(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE, how, -1, 0) != MAP_FAILED;
}

// Of a thread that has touched such a page.
void on_lost_page(int signal, siginfo_t* what, void* context) {
  const int errno_before = errno;
  const bool is_mended = what->si_code > 0 && put_zeros_at(what->si_addr);
  errno = errno_before;
  if (is_mended) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, what, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(signal);
  }
  // It is raised anew, and ends the process.
  ::sigaction(signal, &handler_before, nullptr);
  if (what->si_code <= 0) ::raise(signal);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    static_cast<void>(mappings());
    static_cast<void>(
        ::pthread_atfork([] { mappings().hold(); }, [] { mappings().let_go(); }, [] { mappings().let_go(); }));
    struct sigaction mine{};
    mine.sa_sigaction = on_lost_page;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGBUS, &mine, &handler_before);
  });
}

}  // namespace

int file_mapping::open(int file, std::size_t bytes) {
  install_handler();
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return errno;
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  mappings().add(begin, begin + bytes);
  return 0;
}

file_mapping::~file_mapping() {
  if (data_ == nullptr) return;
  mappings().remove(reinterpret_cast<std::uintptr_t>(data_));
  ::munmap(data_, bytes_);
}

}  // namespace leat::io
