#include "datasets/files/decoded_files.hpp"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

class files_decoded final : public decoded_files {
 public:
  files_decoded(const input_files& from, std::map<std::string, std::shared_ptr<const coded_file>> coded)
      : from_(from), coded_(std::move(coded)) {}

  const std::vector<std::string>& names() const noexcept override { return from_.names(); }
  bool lists() const noexcept override { return from_.lists(); }
  bool has(const std::string& name) const override { return from_.has(name); }
  std::optional<sized_file> find(const std::string& name) const override { return from_.find(name); }
  void expect(std::span<const std::string> names) const override { from_.expect(names); }
  void expect_addresses(std::span<const std::string> names) const override { from_.expect_addresses(names); }
  std::unique_ptr<file_bytes> open(const std::string& name) const override {
    std::unique_ptr<file_bytes> file = from_.open(name);
    if (auto index = coded(name)) return std::make_unique<decoded_file>(std::move(file), std::move(index));
    return file;
  }
  placed_files place(std::span<const sized_file> files) const override {
    std::vector<sized_file> stored(files.begin(), files.end());
    for (sized_file& each : stored) {
      if (const auto index = coded(each.name)) each.size_bytes = index->stored_bytes();
    }
    return from_.place(stored);
  }
  std::shared_ptr<const coded_file> coded(const std::string& name) const override {
    const auto found = coded_.find(name);
    return found == coded_.end() ? nullptr : found->second;
  }

 private:
  const input_files& from_;
  std::map<std::string, std::shared_ptr<const coded_file>> coded_;
};

}  // namespace

std::unique_ptr<const decoded_files> decoded_files_of(const input_files& from,
                                                      std::map<std::string, std::shared_ptr<const coded_file>> coded) {
  return std::make_unique<const files_decoded>(from, std::move(coded));
}

}  // namespace leat::datasets
