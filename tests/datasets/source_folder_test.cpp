// What a folder is, of one that is a list of names.
#include "datasets/open/source_folder.hpp"

#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

using kind = folder_content::kind;

/// Its files lie in a folder of the disk, which is where they are looked into.
class named_folder final : public source_folder {
 public:
  named_folder(std::string path, bool lists) : path_(std::move(path)), lists_(lists) {}

  const std::string& path() const noexcept override { return path_; }
  bool has(std::string_view name) const override { return files_->has(path_ + "/" + std::string(name)); }
  bool has_folder(const std::string&) const override { return false; }
  std::vector<std::string> files_in(std::string_view ending) const override {
    return lists_ ? folder_on_disk(path_)->files_in(ending) : std::vector<std::string>();
  }
  std::unique_ptr<source_folder> below(std::string_view name) const override {
    return std::make_unique<named_folder>(path_ + "/" + std::string(name), lists_);
  }
  bool lists() const noexcept override { return lists_; }
  const input_files& files() const override { return *files_; }
  std::unique_ptr<input_files> files_of_table(const std::string& path) const override { return files_on_disk({path}); }
  io::named_object object(const std::string& path) const override { return {.address = path}; }

 private:
  const std::string path_;
  const bool lists_;
  const std::unique_ptr<input_files> files_ = files_on_disk({});
};

TEST(source_folder, is_what_its_files_say_in_one_order_for_all_sources) {
  const testing::temporary_directory root;
  const std::string path = root.path().string();
  const auto is = [&](kind listed, kind asked, const std::vector<std::string>& files) {
    const folder_content content = content_of_folder(named_folder(path, true));
    EXPECT_EQ(content.what, listed);
    std::vector<std::string> names;
    for (const std::string& each : content.files) names.push_back(each.substr(path.size() + 1));
    EXPECT_EQ(names, files);
    EXPECT_EQ(content_of_folder(*folder_on_disk(path)).what, listed);
    EXPECT_EQ(content_of_folder(named_folder(path, false)).what, asked);
  };
  const auto put = [&](const char* name, std::string_view content = "") {
    testing::write_file(root.path() / name, content);
  };
  // Each of them comes before those that were there.
  is(kind::pictures, kind::unknown, {});
  put("a.jpg");
  is(kind::pictures, kind::unknown, {});
  put("1.tar");
  put("0.tar");
  put(".hidden.tar");
  is(kind::shards, kind::unknown, {"0.tar", "1.tar"});
  put("metadata.csv");
  is(kind::table, kind::table, {"metadata.csv"});
  put("metadata.jsonl");
  is(kind::table, kind::table, {"metadata.jsonl"});
  put("state.json", "{}");
  is(kind::table, kind::table, {"metadata.jsonl"});
  put("state.json", R"({"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}]})");
  is(kind::arrow, kind::arrow, {"data-1.arrow", "data-0.arrow"});
  put("index.json", "{}");
  is(kind::arrow, kind::arrow, {"data-1.arrow", "data-0.arrow"});
  put("index.json", R"({"shards": [{"column_encodings": []}]})");
  is(kind::mds, kind::mds, {});
  put("data.mdb");
  is(kind::lmdb, kind::lmdb, {"data.mdb"});
  put(".zgroup");
  is(kind::zarr, kind::zarr, {});
}

}  // namespace
}  // namespace leat::datasets
