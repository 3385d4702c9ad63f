#include "datasets/tables/empty_files.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"

#include <cassert>
#include <memory>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

class no_samples final : public dataset_model {
 public:
  explicit no_samples(std::vector<std::string> notes) { notes_ = std::move(notes); }

  std::uint64_t size() const noexcept override { return 0; }
  void parts(std::uint64_t, std::span<const need>, part_list&) const override {}
  std::string name(std::uint64_t) const override {
    assert(false && "there is no sample");
    return {};
  }
  dataset_memory memory() const override { return {}; }
  void describe(description& out) const override { describe_model(out, "empty files", *this); }
};

}  // namespace

std::string note_of_empty_file(std::string_view path) { return str_cat(path, ": it has no byte, and so no sample"); }

dataset no_samples_of(std::span<const std::string> paths) {
  std::vector<std::string> notes;
  for (const std::string& path : paths) notes.push_back(note_of_empty_file(path));
  return dataset(std::make_shared<no_samples>(std::move(notes)));
}

}  // namespace leat::datasets
