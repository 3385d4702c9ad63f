// An object store of one's own: a folder's files, held in memory, at addresses that begin with mem://.
//
//     own_store FOLDER
#include <leat/digest.hpp>
#include <leat/loader.hpp>
#include <leat/object_store.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

namespace asio = boost::asio;

class memory_store final : public leat::object_store {
 public:
  explicit memory_store(const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      objects_["set/" + entry.path().lexically_relative(folder).string()].assign(std::istreambuf_iterator<char>(file),
                                                                                 {});
    }
  }
  asio::awaitable<leat::stored_object> look_at(const std::string& name) const override {
    const auto found = objects_.find(name);
    if (found == objects_.end()) throw leat::error(leat::errc::not_found, "there is no such object");
    co_return leat::stored_object{.size_bytes = found->second.size()};
  }
  asio::awaitable<std::size_t> read(const std::string& name, std::uint64_t offset,
                                    std::span<std::byte> into) const override {
    co_return objects_.at(name).copy(reinterpret_cast<char*>(into.data()), into.size(), offset);
  }
  std::optional<std::vector<leat::listed_object>> list(const std::string& prefix) const override {
    std::vector<leat::listed_object> found;
    for (auto each = objects_.lower_bound(prefix); each != objects_.end() && each->first.starts_with(prefix); ++each)
      found.push_back({each->first, {.size_bytes = each->second.size()}});
    return found;
  }

 private:
  std::map<std::string, std::string> objects_;
};

std::vector<leat::digest> epoch_of(const std::string& source) {
  leat::loader train{leat::open(source),
                     {.batch_size = 64, .seed = 7, .epochs = 1, .digests = true},
                     leat::image{"jpg"}.random_resized_crop(64),
                     leat::label{"cls"}};
  std::vector<leat::digest> batches;
  for (const leat::batch& batch : train.blocking()) batches.push_back(*batch.content_digest());
  return batches;
}

int main(int, char** argv) {
  leat::register_store("mem", std::make_shared<memory_store>(argv[1]));
  const bool same = epoch_of("mem://set/") == epoch_of(argv[1]);
  std::printf("an epoch out of memory has %s bytes as one of the disk\n", same ? "the same" : "other");
  return same ? 0 : 1;
}
