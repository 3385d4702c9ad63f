#include "tools/status_line.hpp"

#include "tools/human.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

namespace leat::tools {
namespace {

// What is over sooner needs no line.
constexpr std::chrono::milliseconds first_after(150);
constexpr std::chrono::milliseconds redrawn_every(100);

void send(const std::string& text) {
  // One call, so that another process's line does not get between.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

status_line::status_line(drawing draw) : screen_(terminal::of(stderr)), draw_(std::move(draw)) {
  if (screen_.live) thread_ = std::thread([this] { run(); });
}

status_line::~status_line() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void status_line::run() {
  bool drawn = false;
  std::unique_lock lock(mutex_);
  auto wake = std::chrono::steady_clock::now() + first_after;
  while (!ended_changed_.wait_until(lock, wake, [this] { return ended_; })) {
    lock.unlock();
    // The last column stays free: some terminals wrap when it is written.
    const std::string line = draw_(screen_, terminal_columns() - 1);
    send("\r" + line + "\x1b[K");
    drawn = true;
    lock.lock();
    wake += redrawn_every;
    const auto now = std::chrono::steady_clock::now();
    if (wake < now) wake = now + redrawn_every;  // A stopped process does not catch up.
  }
  if (drawn) send("\r\x1b[K");
}

std::string bar_text(const terminal& screen, std::size_t columns, double share, bar_rest rest) {
  share = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0);
  std::string filled;
  std::string empty;
  if (screen.unicode) {
    constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const auto whole = static_cast<std::size_t>(share * static_cast<double>(columns) * 8);
    for (std::size_t i = 0; i < whole / 8; ++i) filled += "█";
    filled += eighths[whole % 8];
    const std::size_t used = whole / 8 + (whole % 8 != 0 ? 1 : 0);
    for (std::size_t i = used; i < columns; ++i) empty += rest == bar_rest::dotted ? "·" : " ";
  } else {
    const auto whole = static_cast<std::size_t>(share * static_cast<double>(columns));
    filled.assign(whole, '#');
    empty.assign(columns - whole, rest == bar_rest::dotted ? '.' : ' ');
  }
  return screen.accent(filled) + screen.dim(empty);
}

std::string bar_line(const terminal& screen, std::size_t columns, double share, const std::string& end) {
  constexpr std::size_t bar_columns_max = 40;
  constexpr std::size_t bar_columns_min = 11;
  const std::size_t room = columns - std::min<std::size_t>(columns, 2);
  const std::size_t bar = room >= end.size() + bar_columns_min ? std::min(room - end.size(), bar_columns_max) : 0;
  return str_cat("  ", bar_text(screen, bar, share), end.substr(0, room - bar));
}

}  // namespace leat::tools
