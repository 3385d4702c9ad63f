#include "datasets/views/picture_sizes.hpp"

#include "base/excluded_kind.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace leat::datasets {
namespace {

// Pictures that a thread takes at a time. Each is an open file at most, in turns of the loop's own.
constexpr std::size_t measured_together = 2048;

/// Of a thread: reads on a loop of its own.
class picture_measurer {
 public:
  ///   failures   by the place among the asked
  using failed = std::pair<std::size_t, std::string>;

  picture_measurer(const dataset_model& model, size_reader tell) : model_(model), tell_(tell) {}

  void measure(std::span<const asked_picture> asked, std::span<picture_size> sizes, std::vector<failed>& failures) {
    std::vector<stored_picture> left;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto [sample, field] = asked[i];
      const std::optional<defect> known = model_.defects() == 0 ? std::nullopt : model_.defect_of(sample);
      const bool is_excluded = known && known->kind == corrupt_kinds::excluded;
      if (known && !is_excluded) {
        failures.emplace_back(i, known->reason);
        continue;
      }
      const need wanted[] = {{.field = field}};
      parts_.clear();
      model_.parts(sample, wanted, parts_);
      if (!is_excluded && parts_.size() == 1 && parts_.front().form == part_form::stored) {
        left.push_back({i, parts_.front().where});
        continue;
      }
      try {
        std::vector<std::byte> whole;
        append_field(model_, sample, field, {parts_.data(), parts_.size()}, sources_, whole);
        take(i, tell_(whole), sizes, failures);
      } catch (const read_failure& failure) {
        // Of what is excluded there may be nothing left that can be read.
        if (failure.whose() == io::fault::environment && !is_excluded) throw;
        failures.emplace_back(i, failure.what());
      } catch (const error& damage) {
        if (damage.code() != errc::corrupt) throw;
        failures.emplace_back(i, damage.what());
      }
    }
    for (const round& each : rounds) {
      std::vector<stored_picture> next;
      for (std::size_t at = 0; at < left.size(); at += each.together) {
        const std::span<const stored_picture> some =
            std::span(left).subspan(at, std::min(each.together, left.size() - at));
        read(some, each.bytes, sizes, failures, next);
      }
      left = std::move(next);
    }
  }

 private:
  struct stored_picture {
    std::size_t place;
    extent where;
  };
  ///   bytes   of each that are read, if it has so many; not more than together x bytes are in memory
  struct round {
    std::uint64_t bytes;
    std::size_t together;
  };
  // 1 KiB has the size of nearly all, 64 KiB that of one whose thumbnail stands before it, and a TIFF may say it at its end.
  static constexpr round rounds[] = {
      {1024, measured_together}, {std::uint64_t{64} << 10, 32}, {std::uint64_t{64} << 20, 1}};

  static void take(std::size_t place, const stages::outcome<picture_size>& told, std::span<picture_size> sizes,
                   std::vector<failed>& failures) {
    if (told) {
      sizes[place] = *told;
    } else {
      failures.emplace_back(place, told.reason());
    }
  }

  /// Reads the beginnings of some; those of which more is to be read go to `next`.
  void read(std::span<const stored_picture> some, std::uint64_t bytes, std::span<picture_size> sizes,
            std::vector<failed>& failures, std::vector<stored_picture>& next) {
    std::size_t all = 0;
    for (const stored_picture& each : some) all += std::min(bytes, each.where.stored_bytes);
    bytes_.resize(all);
    std::map<std::uint32_t, std::vector<blocking_source::request>> of_source;
    std::size_t at = 0;
    for (const stored_picture& each : some) {
      const std::uint64_t own = std::min(bytes, each.where.stored_bytes);
      if (own != 0) {
        of_source[each.where.source].push_back(
            {each.where.file, each.where.offset, std::span(bytes_).subspan(at, own)});
      }
      at += own;
    }
    std::vector<std::pair<const std::byte*, std::string>> unread;
    for (const auto& [source, requests] : of_source) read_all(sources_.of(*model_.sources()[source]), requests, unread);
    at = 0;
    for (const stored_picture& each : some) {
      const std::uint64_t own = std::min(bytes, each.where.stored_bytes);
      const std::span<const std::byte> begin = std::span(bytes_).subspan(at, own);
      at += own;
      const auto failure = std::find_if(unread.begin(), unread.end(),
                                        [&](const auto& one) { return own != 0 && one.first == begin.data(); });
      if (failure != unread.end()) {
        failures.emplace_back(each.place, failure->second);
        continue;
      }
      const stages::outcome<picture_size> told = tell_(begin);
      const bool is_last = bytes == std::end(rounds)[-1].bytes;
      if (told.kind() == stages::outcome_kind::corrupt && own < each.where.stored_bytes && !is_last) {
        next.push_back(each);
      } else {
        take(each.place, told, sizes, failures);
      }
    }
  }

  static void read_all(blocking_source& from, std::span<const blocking_source::request> requests,
                       std::vector<std::pair<const std::byte*, std::string>>& unread) {
    try {
      from.read(requests);
      return;
    } catch (const read_failure& failure) {
      if (failure.whose() == io::fault::environment) throw;
    }
    // Which of them it was is not told: one after the other.
    for (const blocking_source::request& each : requests) {
      try {
        from.read({&each, 1});
      } catch (const read_failure& failure) {
        if (failure.whose() == io::fault::environment) throw;
        unread.emplace_back(each.into.data(), failure.what());
      }
    }
  }

  const dataset_model& model_;
  size_reader tell_;
  blocking_sources sources_{opening_loop::traffic::many};
  part_list parts_;
  std::vector<std::byte> bytes_;
};

}  // namespace

measured_pictures measure_pictures(const dataset_model& model, std::span<const asked_picture> asked, size_reader tell) {
  measured_pictures found;
  found.sizes.resize(asked.size());
  std::mutex mutex;
  const std::size_t turns = (asked.size() + measured_together - 1) / measured_together;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  for_each_parallel_with(
      turns, threads, [&] { return std::make_unique<picture_measurer>(model, tell); },
      [&](std::size_t turn, picture_measurer& own) {
        const std::size_t begin = turn * measured_together;
        const std::size_t count = std::min(measured_together, asked.size() - begin);
        std::vector<picture_measurer::failed> failures;
        own.measure(asked.subspan(begin, count), std::span(found.sizes).subspan(begin, count), failures);
        if (failures.empty()) return;
        const auto first = std::min_element(failures.begin(), failures.end());
        const std::lock_guard lock(mutex);
        if (found.unreadable == 0 || begin + first->first < found.first) {
          found.first = begin + first->first;
          found.why = first->second;
        }
        found.unreadable += failures.size();
      });
  return found;
}

}  // namespace leat::datasets
