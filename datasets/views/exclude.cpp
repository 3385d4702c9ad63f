// A dataset some of whose samples are known not to be wanted.
#include "base/excluded_kind.hpp"
#include "base/text.hpp"
#include "datasets/views/defective_view.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace leat {
namespace datasets {
namespace {

class excluding_model final : public defective_view {
 public:
  excluding_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint64_t> excluded)
      : defective_view(std::move(whole), std::move(excluded)) {}

  void describe(description& out) const override {
    whole().describe(out);
    out.add("excluded", which());
  }

 private:
  defect wrong_with(std::uint64_t sample) const override {
    defect found{.source = no_source, .file = 0, .offset = 0, .reason = "excluded", .kind = corrupt_kinds::excluded};
    part_list parts;
    whole().parts(sample, parts);
    for (const part& each : parts) {
      if (each.is_made()) continue;
      found.source = each.where.source;
      found.file = each.where.file;
      found.offset = whole().header_offset(sample, each.where);
      break;
    }
    return found;
  }
};

}  // namespace
}  // namespace datasets

dataset dataset::exclude(std::span<const std::uint64_t> samples) const {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.empty()) return *this;
  if (sorted.back() >= size()) {
    throw error(errc::usage, str_cat("exclude: sample ", sorted.back(), " is not there; the dataset has ", size(),
                                     ", numbered from 0"));
  }
  if (sorted.size() == size()) {
    throw error(errc::usage, str_cat("exclude: all ", size(), " samples are among them; leave some"));
  }
  return dataset(std::make_shared<datasets::excluding_model>(model(), std::move(sorted)));
}

dataset dataset::exclude(std::initializer_list<std::uint64_t> samples) const {
  return exclude(std::span(samples.begin(), samples.size()));
}

}  // namespace leat
