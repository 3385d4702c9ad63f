#include "tools/epoch_progress.hpp"

#include "base/text.hpp"
#include "tools/human.hpp"
#include "tools/status_line.hpp"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::size_t bar_columns_min = 8;
constexpr std::size_t bar_columns_max = 32;

// "decode, 1,690/s".
std::string short_text(const verdict& of) {
  std::string text(name(of.who));
  if (of.also) str_append(text, " and ", name(*of.also));
  if (const capacity* const own = of.capacity_of(of.who)) {
    str_append(text, own->at_least ? ", at least " : ", ", count_text(static_cast<std::uint64_t>(own->per_s + 0.5)),
               "/s");
  }
  return text;
}

// "store away for 14 s, 256 reads wait"; empty where it keeps up.
std::string store_text(const remote_stats& now) {
  if (now.away_s == 0 && (now.requests_per_s_max == 0 || now.reads_waiting == 0)) return "";
  return str_cat(
      "store ",
      now.away_s > 0
          ? str_cat("away for ", static_cast<std::uint64_t>(now.away_s), " s")
          : str_cat("allows ", count_text(static_cast<std::uint64_t>(now.requests_per_s_max + 0.5)), " requests/s"),
      ", ", counted(now.reads_waiting, "read waits", "reads wait"));
}

}  // namespace

std::string epoch_progress::draw(const terminal& screen, std::size_t columns) {
  const loader_stats now = train_.stats();
  rate_.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(), now.planned,
            now.bytes_read);
  const double share =
      static_cast<double>(now.planned) / static_cast<double>(std::max<std::uint64_t>(samples_in_all_, 1));
  const double left = static_cast<double>(samples_in_all_ - std::min(samples_in_all_, now.planned));
  // From the most to the least wanted: on a narrow terminal the last ones are left out.
  std::vector<std::string> parts;
  parts.push_back(absl::StrFormat("%3.0f %%", share * 100));
  if (std::string store = store_text(now.remote); !store.empty()) parts.push_back(std::move(store));
  parts.push_back(str_cat(count_text(static_cast<std::uint64_t>(rate_.samples_per_s() + 0.5)), " samples/s"));
  parts.push_back(str_cat("eta ", clock_text(rate_.samples_per_s() > 0 ? left / rate_.samples_per_s() : -1)));
  parts.push_back(
      short_text(now.verdict));  // fits in 80 columns, but for an "at least" in the second of several epochs
  parts.push_back(rate_text(rate_.bytes_per_s()));
  std::string start = "  ";
  if (epochs_ > 1) {
    str_append(start, "epoch ", std::min(now.epochs_finished + 1, epochs_), "/", epochs_, "  ");
  }
  std::string end;
  for (const std::string& part : parts) {
    if (start.size() + bar_columns_min + end.size() + 2 + part.size() > columns) break;
    str_append(end, "  ", part);
  }
  const std::size_t taken = start.size() + end.size();
  const std::size_t bar = columns > taken ? std::min(columns - taken, bar_columns_max) : 0;
  return str_cat(start, bar_text(screen, bar, share), end);
}

}  // namespace leat::tools
