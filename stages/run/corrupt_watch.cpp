#include "stages/run/corrupt_watch.hpp"

#include "base/excluded_kind.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/run/delivery.hpp"
#include "stages/state/journal.hpp"

#include <algorithm>
#include <cmath>

namespace leat::stages {
namespace {

std::uint64_t corrupt_max_of(const corrupt_limits& limits) {
  const double share = std::floor(limits.corrupt_max.share * static_cast<double>(limits.epoch_samples));
  // A share of 1 is no bound. It is not computed, since a double does not hold every number of samples.
  const std::uint64_t of_share =
      limits.corrupt_max.share >= 1 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(share);
  return std::min(limits.corrupt_max.count, of_share);
}

std::string count_text(std::uint64_t count, std::string_view of) {
  return str_cat(count, " ", of, count == 1 ? "" : "s");
}

// Samples that were excluded say nothing of the data.
bool is_excluded(const journal_entry& entry) { return entry.kind == corrupt_kinds::excluded; }

}  // namespace

corrupt_watch::corrupt_watch(const corrupt_limits& limits, std::uint32_t epoch, const state_counters& counted)
    : corrupt_max_(corrupt_max_of(limits)),
      unreadable_max_(limits.unreadable_max),
      epoch_(epoch),
      corrupt_(counted.epoch_corrupt),
      unreadable_(counted.epoch_unreadable),
      dry_(counted.samples + counted.substituted == 0 ? counted.planned : 0),
      planned_(counted.planned),
      delivered_(counted.samples + counted.substituted),
      corrupt_in_all_(counted.quarantined) {}

std::optional<error> corrupt_watch::see(const delivery_item& item) {
  if (item.epoch != epoch_) {
    epoch_ = item.epoch;
    corrupt_ = unreadable_ = epoch_planned_ = epoch_delivered_ = 0;
  }
  for (const journal_entry& entry : item.journal) count(entry);
  planned_ += item.planned;
  const std::uint64_t delivered = item.samples + item.substituted;
  delivered_ += delivered;
  epoch_planned_ += item.planned;
  epoch_delivered_ += delivered;
  const auto excluded =
      static_cast<std::uint64_t>(std::count_if(item.journal.begin(), item.journal.end(), is_excluded));
  dry_ = delivered != 0 ? 0 : dry_ + item.planned - std::min<std::uint64_t>(excluded, item.planned);

  if (unreadable_ > unreadable_max_) {
    return error(
        errc::io,
        str_cat(count_text(unreadable_, "sample"), " of epoch ", epoch_, " could not be read, and ", unreadable_max_,
                " may be (", spelled(option_id::unreadable_max), ")", words_for(most_frequent(true))),
        option_id::unreadable_max);
  }
  if (corrupt_ > corrupt_max_) {
    return error(
        errc::corrupt,
        str_cat(count_text(corrupt_, "sample"), " of epoch ", epoch_, corrupt_ == 1 ? " is" : " are", " corrupt, and ",
                corrupt_max_, " may be (", spelled(option_id::corrupt_max), ")", words_for(most_frequent(false))),
        option_id::corrupt_max);
  }
  const bool is_first_epoch = delivered_ == 0 && item.end_of_epoch;
  const bool is_whole_epoch = epoch_delivered_ == 0 && epoch_planned_ >= epoch_least && item.end_of_epoch;
  if (corrupt_in_all_ == 0 || !(is_first_epoch || is_whole_epoch || dry_ >= samples_without_any_max)) {
    return std::nullopt;
  }
  const reason most = most_frequent(false);
  if (delivered_ == 0) {
    return error(
        most.unreadable ? errc::io : errc::corrupt,
        str_cat("nothing was delivered: ",
                planned_ == 1 ? "the one sample planned is" : str_cat("all ", planned_, " samples planned are"),
                " corrupt", words_for(most)));
  }
  return error(most.unreadable ? errc::io : errc::corrupt,
               str_cat("nothing is delivered any more: the last ", dry_, " samples planned, up to epoch ", item.epoch,
                       ", are all corrupt", words_for(most)));
}

void corrupt_watch::count(const journal_entry& entry) {
  if (is_excluded(entry)) return;
  ++corrupt_;
  ++corrupt_in_all_;
  if (entry.unreadable) ++unreadable_;
  reason& known = reasons_[{entry.kind, entry.field, entry.read_failure}];
  if (known.count++ == 0) {
    known.first = sample_text(entry);
    known.unreadable = entry.unreadable;
  }
}

// Empty where all of them were counted before the run was resumed.
corrupt_watch::reason corrupt_watch::most_frequent(bool unreadable) const {
  if (reasons_.empty()) return {};
  const auto rank = [unreadable](const reason& of) { return unreadable && !of.unreadable ? 0 : of.count; };
  return std::max_element(reasons_.begin(), reasons_.end(),
                          [&](const auto& a, const auto& b) { return rank(a.second) < rank(b.second); })
      ->second;
}

std::string corrupt_watch::words_for(const reason& what) const {
  if (what.count == 0) return "; the reasons were given before the run was resumed";
  return str_cat("; the most frequent reason (", what.count, " of ", corrupt_in_all_, "), first of sample ",
                 what.first);
}

}  // namespace leat::stages
