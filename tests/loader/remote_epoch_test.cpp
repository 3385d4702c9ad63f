// Epochs over HTTP beside the same ones from files: the same batches, whatever the server does wrong, or an error that says what.
#include "datasets/formats/tar/photo_places.hpp"
#include "datasets/formats/tar/shard_index_file.hpp"
#include "datasets/write/index_writer.hpp"
#include "stages/fields/photo_reach.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/loader/remote_shards.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/tar_writer.hpp"

#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/photo_pack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::http_fault;
using testing::loader;
using testing::loader_options;
using ::testing::Not;
using testing::seen_run;
using testing::served_request;
using testing::shard_of;

class remote_epoch : public testing::remote_shards {
 protected:
  remote_epoch() {
    put("rows.npy", testing::npy_text(testing::npy_dict("<i4", "60, 1024"),
                                      testing::bytes_of(testing::counting<std::int32_t>(60 * 1024))));
    put("records.bin", testing::bytes_of(testing::counting<std::int16_t>(600)));
    put("records.json", R"({"fields": [{"name": "x", "dtype": "i16", "shape": [10]}]})");
  }
};

TEST_F(remote_epoch, has_the_batches_of_the_files) {
  const loader_options options = testing::small_options();
  const seen_run tar = testing::run_all(here("train-{0..2}.tar"), options, fields());
  ASSERT_EQ(tar.batches.size(), 16U);
  EXPECT_EQ(testing::run_all(there("train-{0..2}.tar"), options, fields()).batches, tar.batches);
  loader_options twin = options;
  twin.reader.backend = read_backend::preadv;
  EXPECT_EQ(testing::run_all(there("train-{0..2}.tar?signature=hush"), twin, fields()).batches, tar.batches);
  const seen_run rows = testing::run_all(here("rows.npy"), options, {array("npy")});
  EXPECT_EQ(testing::run_all(there("rows.npy"), options, {array("npy")}).batches, rows.batches);
  const seen_run records = testing::run_all(here("records.bin"), options, {array("x")});
  EXPECT_EQ(testing::run_all(there("records.bin"), options, {array("x")}).batches, records.batches);
  ASSERT_FALSE(rows.batches.empty() || records.batches.empty());
  EXPECT_EQ(there("records.{bin,bin}").size(), 2 * here("records.bin").size()) << "the second is named with a number";
  for (const char* const secret : {"user:hush@", "user:hu/sh@", "user:hu?sh@"}) {
    for (const char* const rest : {"host/*.tar", "host/{a", "host/a.tar"}) {
      try {
        static_cast<void>(open(std::string("https://") + secret + rest));
        ADD_FAILURE() << secret << rest;
      } catch (const error& refused) {
        EXPECT_THAT(refused.what(), HasSubstr(": an address with a user"));
        EXPECT_THAT(refused.what(), Not(HasSubstr("hu")));
      }
    }
  }
  EXPECT_THAT(there("train-1.tar?signature=hush").name(3), HasSubstr("/train-1.tar/1003"));
  EXPECT_THAT(there("train-1.tar?signature=hush").name(3), Not(HasSubstr("hush")));
}

TEST_F(remote_epoch, has_them_with_any_number_of_connections) {
  loader_options options = testing::small_options();
  options.epochs = 4;
  loader plain(here("train-{0..2}.tar"), options, fields());
  const std::vector<testing::seen_batch> expected = testing::run_epochs(plain, 4);
  loader train(there("train-{0..2}.tar"), options, fields());
  const stages::concurrency_limits most = stages::depths_max(train);
  EXPECT_GE(most.connections, 32U);
  EXPECT_EQ(stages::depths_of(train).connections, most.connections) << "nobody tunes it";
  EXPECT_EQ(stages::depths_max(plain).connections, 0U) << "files have none";
  for (const std::uint32_t wrong : {0U, most.connections + 1}) {
    stages::concurrency_limits refused = most;
    refused.connections = wrong;
    EXPECT_THROW(stages::set_depths(train, refused), error) << wrong;
  }
  std::vector<testing::seen_batch> seen;
  for (const std::uint32_t connections : {1U, most.connections, 3U, 40U}) {
    stages::concurrency_limits wanted = stages::depths_of(train);
    wanted.connections = std::min(connections, most.connections);
    stages::set_depths(train, wanted);
    EXPECT_EQ(stages::depths_of(train), wanted);
    for (testing::seen_batch& each : testing::run_epochs(train, 1)) seen.push_back(std::move(each));
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(remote_epoch, begins_with_few_connections_where_it_tunes_itself) {
  loader_options options = testing::small_options();
  options.epochs = 1;
  options.tune = tuning::on;
  loader plain(here("train-{0..2}.tar"), options, fields());
  loader train(there("train-{0..2}.tar"), options, fields());
  EXPECT_EQ(stages::depths_of(train).connections, 32U);
  EXPECT_GT(stages::depths_max(train).connections, 32U);
  EXPECT_EQ(testing::run_epochs(train, 1), testing::run_epochs(plain, 1));
}

// Those that have a span wait no longer than stats() say of all.
TEST_F(remote_epoch, has_each_request_in_its_timeline_with_its_parts) {
  server_.set_rule([](const served_request&) {
    return http_fault{.what = http_fault::kind::late, .wait = std::chrono::milliseconds(20)};
  });
  loader_options options = testing::small_options();
  options.epochs = 1;
  options.timeline.bytes = std::size_t{1} << 20;
  loader plain(here("train-{0..2}.tar"), options, fields());
  loader train(there("train-{0..2}.tar"), options, fields());
  EXPECT_EQ(testing::run_epochs(train, 1), testing::run_epochs(plain, 1)) << "no byte depends on it";
  const std::string path = (folder_.path() / "t.json").string();
  train.write_timeline(path);
  std::ifstream in(path);
  const nlohmann::json file = nlohmann::json::parse(in);
  struct span {
    double begin = 0;
    double end = 0;
  };
  std::map<int, span> request_of_line;
  std::map<std::string, double> sums_us;
  std::map<std::string, int> spans;
  std::uint64_t requests = 0;
  constexpr double rounding = 0.126;  // times are eighths of a microsecond
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] != "X") continue;
    const auto name = each["name"].get<std::string>();
    const span seen{each["ts"].get<double>(), each["ts"].get<double>() + each["dur"].get<double>()};
    sums_us[name] += seen.end - seen.begin;
    ++spans[name];
    if (name == "request") {
      request_of_line[each["tid"].get<int>()] = seen;
      requests += each["args"]["requests"].get<std::uint64_t>();
    }
    if (name != "connect" && name != "wait for the answer" && name != "receive") continue;
    const span& whole = request_of_line.at(each["tid"].get<int>());
    EXPECT_GE(seen.begin, whole.begin - rounding) << name;
    EXPECT_LE(seen.end, whole.end + rounding) << name;
    if (name == "wait for the answer") EXPECT_GE(seen.end - seen.begin, 19'000);
  }
  const loader_stats stats = train.stats();
  EXPECT_LE(requests, stats.read.count);
  EXPECT_GE(requests, 1U);
  EXPECT_LE(sums_us["connect"] + sums_us["wait for the answer"] + sums_us["receive"], sums_us["request"]);
  EXPECT_LE(sums_us["request"] * 1e-6, stats.remote.wait_s * 1.01);
  EXPECT_LE(sums_us["request"], sums_us["fetch"]) << "a read ends after its request";
  EXPECT_GE(spans["sample"], 1);
  EXPECT_EQ(spans["read of the sample"], spans["sample"]);
}

TEST_F(remote_epoch, has_them_from_a_bucket_whose_names_were_listed) {
  std::string listing = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>";
  for (int i = 0; i < shards; ++i) {
    server_.put("bucket/train-" + std::to_string(i) + ".tar", shard_of(i));
    listing += "<Contents><Key>train-" + std::to_string(i) + ".tar</Key><Size>1</Size></Contents>";
  }
  server_.set_rule([page = listing + "</ListBucketResult>"](const served_request& asked) {
    return asked.target.find("list-type=2") == std::string::npos
               ? http_fault()
               : http_fault{.what = http_fault::kind::status, .status = 200, .body = page};
  });
  const remote_options store{
      .allow_http = true, .endpoint = server_.address(""), .access_key_id = "KEYID", .secret_access_key = "hush"};
  const dataset samples = open("s3://bucket/train-*.tar", {.remote = store});
  const loader_options options = testing::small_options();
  EXPECT_EQ(testing::run_all(samples, options, fields()).batches,
            testing::run_all(here("train-{0..2}.tar"), options, fields()).batches);
  EXPECT_EQ(samples.name(3), "s3://bucket/train-0.tar/3");
  EXPECT_THAT(server_.all_headers(), ::testing::AllOf(HasSubstr("Credential=KEYID/"), Not(HasSubstr("hush"))));
}

TEST_F(remote_epoch, is_opened_by_what_a_listing_has_told_where_that_is_so) {
  constexpr int many = 20;
  std::uint64_t looks = 0;
  std::string listing;
  std::vector<std::string> tags;
  const auto list = [&](const std::vector<std::string>& told) {
    listing = "<ListBucketResult><IsTruncated>false</IsTruncated>";
    for (int i = 0; i < many; ++i) {
      const std::string name = "many-" + std::to_string(i) + ".tar";
      listing += "<Contents><Key>" + name + "</Key><Size>" + std::to_string(shard_of(i).size()) + "</Size><ETag>" +
                 told[static_cast<std::size_t>(i)] + "</ETag></Contents>";
    }
    listing += "</ListBucketResult>";
  };
  const auto answer = [&](const served_request& asked) {
    if (asked.target.find("list-type=2") != std::string::npos)
      return http_fault{.what = http_fault::kind::status, .status = 200, .body = listing};
    if (asked.value("Range") == "bytes=0-0") ++looks;
    return http_fault();
  };
  for (int i = 0; i < many; ++i) {
    const std::string name = "many-" + std::to_string(i) + ".tar";
    testing::write_file(folder_.path() / name, shard_of(i));
    tags.push_back(server_.put("bucket/" + name, shard_of(i)));
  }
  list(tags);
  server_.set_rule(answer);
  const remote_options store{
      .allow_http = true, .endpoint = server_.address(""), .access_key_id = "KEYID", .secret_access_key = "hush"};
  const loader_options options = testing::small_options();
  const seen_run files = testing::run_all(here("many-{0..19}.tar"), options, fields());
  for (const char* const pattern : {"s3://bucket/many-{0..19}.tar", "s3://bucket/many-*.tar"}) {
    looks = 0;
    const dataset samples = open(pattern, {.remote = store});
    // A shard that was not looked at is opened by its listing when it is walked.
    EXPECT_EQ(looks, 1U + 2U) << "the first shard, and two indexes that are not there";
    EXPECT_EQ(samples.size(), 20U * many);
  }
  EXPECT_EQ(testing::run_all(open("s3://bucket/many-{0..19}.tar", {.remote = store}), options, fields()).batches,
            files.batches);
  // A store whose listings have tags of their own.
  std::rotate(tags.begin(), tags.begin() + 1, tags.end());
  list(tags);
  looks = 0;
  EXPECT_EQ(testing::run_all(open("s3://bucket/many-{0..19}.tar", {.remote = store}), options, fields()).batches,
            files.batches);
  EXPECT_GE(looks, static_cast<std::uint64_t>(many));
  // One that does not list.
  listing = "<Error><Code>AccessDenied</Code></Error>";
  EXPECT_EQ(testing::run_all(open("s3://bucket/many-{0..19}.tar", {.remote = store}), options, fields()).batches,
            files.batches);
}

// Files below `folder` of the disk, in the bucket under their paths below `root`.
void put_below(testing::fault_server& server, const std::filesystem::path& root, const std::filesystem::path& folder) {
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (!each.is_regular_file()) continue;
    std::ifstream in(each.path(), std::ios::binary);
    server.put("bucket/" + each.path().lexically_relative(root).string(), {std::istreambuf_iterator<char>(in), {}});
  }
}

// What a dataset is, without the folder that it lies in.
std::string account_of(const dataset& samples, const std::string& folder) {
  std::string out;
  for (const std::string& each : samples.classes()) out += "class " + each + "\n";
  for (const field_info& each : samples.fields()) out += "field " + each.name + "\n";
  for (const std::string& each : samples.notes()) out += "note " + each + "\n";
  out += std::to_string(samples.size()) + " samples\n";
  // A shard's names are read from it, one after another.
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(samples.size(), 12); ++i) {
    out += samples.name(i) + " " + std::to_string(samples.label(i).value_or(-1)) + "\n";
  }
  for (std::size_t at = out.find(folder); at != std::string::npos; at = out.find(folder)) out.erase(at, folder.size());
  return out;
}

TEST_F(remote_epoch, has_the_batches_of_the_same_folder_on_a_disk_by_its_listing) {
  namespace fs = std::filesystem;
  const fs::path data = LEAT_TEST_DATA;
  const auto write = [&](const std::string& name, std::size_t size) {
    fs::create_directories((folder_.path() / name).parent_path());
    std::vector<std::byte> content(size);
    testing::fill_seeded(std::hash<std::string>()(name), 0, content);
    testing::write_file(folder_.path() / name, {reinterpret_cast<const char*>(content.data()), content.size()});
  };
  // In Python's order, not in that of the listing: "B" is before "a", and a folder's own files before those below it.
  for (const char* const name :
       {"classes/cat/b.jpg", "classes/cat/B.jpg", "classes/cat/a b+c&d.JPEG", "classes/cat/deep/0.png",
        "classes/cat-2/1.jpg", "classes/dog/\xC3\xA9.webp", "classes/dog/text.txt", "classes/dog/x.gif",
        "classes/loose.jpg", "flat/2.jpg", "flat/10.jpg", "flat/below/1.jpg", "flat/1.bmp"}) {
    write(name, 1 + std::string_view(name).size() * 997 % 30'000);
  }
  fs::create_directories(folder_.path() / "shards");
  for (int i = 0; i < shards; ++i)
    testing::write_file(folder_.path() / "shards" / (std::to_string(i) + ".tar"), shard_of(i));
  put_below(server_, folder_.path(), folder_.path());
  put_below(server_, data, data / "zarr");
  put_below(server_, data, data / "mds");
  const remote_options store{
      .allow_http = true, .endpoint = server_.address(""), .access_key_id = "KEYID", .secret_access_key = "hush"};
  const loader_options options = testing::small_options();
  struct one {
    std::string path;
    std::vector<field> fields;
    std::uint64_t requests;  // to open it; 0: not counted
  };
  for (const one& each :
       {one{(folder_.path() / "classes").string(), {bytes("jpg"), label("cls")}, 3},
        one{(folder_.path() / "flat").string(), {bytes("jpg")}, 2},
        one{(folder_.path() / "shards").string(), fields(), 0}, one{(data / "zarr" / "array.zarr").string(), {}, 0},
        one{(data / "mds" / "plain").string(), {}, 0}}) {
    const bool is_data = each.path.starts_with(data.string());
    const std::string name = fs::path(each.path).lexically_relative(is_data ? data : folder_.path()).string();
    for (const char* const end : {"/", ""}) {
      const std::string address = "s3://bucket/" + name + end;
      const std::uint64_t before = server_.requests();
      const dataset there = open(address, {.remote = store});
      if (each.requests != 0) EXPECT_EQ(server_.requests() - before, each.requests) << address;
      const dataset here = open(each.path);
      ASSERT_EQ(account_of(there, "s3://bucket/" + name), account_of(here, each.path)) << address;
      ASSERT_GT(here.size(), 0U) << address;
      if (std::string_view(end).empty()) continue;
      if (each.fields.empty()) {
        EXPECT_EQ(there.read(0), here.read(0)) << address;
        EXPECT_EQ(there.read(here.size() - 1), here.read(here.size() - 1)) << address;
        continue;
      }
      const seen_run run = testing::run_all(there, options, each.fields);
      EXPECT_EQ(run.message, "") << address;
      EXPECT_EQ(run.batches, testing::run_all(here, options, each.fields).batches) << address;
    }
  }
  const auto refused = [&](const std::string& address, errc code) {
    return testing::message_of(code, [&] { static_cast<void>(open(address, {.remote = store})); });
  };
  EXPECT_THAT(refused("s3://bucket/none/", errc::not_found), HasSubstr("s3://bucket/none/: no object lies below it"));
  EXPECT_THAT(refused("s3://bucket/none", errc::not_found), HasSubstr("s3://bucket/none"));
  EXPECT_THAT(refused(server_.address("set/"), errc::not_found), HasSubstr("a folder is listed of s3:// only"));
  server_.put("bucket/tables/a.parquet", "PAR1");
  EXPECT_THAT(refused("s3://bucket/tables/", errc::not_found),
              HasSubstr("name its .parquet files, 's3://bucket/tables/*.parquet'"));
}

TEST_F(remote_epoch, has_them_too_where_one_request_in_five_goes_wrong) {
  const loader_options options = testing::small_options();
  const seen_run tar = testing::run_all(here("train-{0..2}.tar"), options, fields());
  server_.set_rule([random = testing::seeded_random(19)](const served_request&) mutable {
    const http_fault faults[] = {{.what = http_fault::kind::hang_up},
                                 {.what = http_fault::kind::status, .status = 503},
                                 {.what = http_fault::kind::cut, .bytes = 10},
                                 {.what = http_fault::kind::cut, .bytes = 5'000}};
    return random.below(5) == 0 ? faults[random.below(std::size(faults))] : http_fault();
  });
  EXPECT_EQ(testing::run_all(there("train-{0..2}.tar"), options, fields()).batches, tar.batches);
}

TEST_F(remote_epoch, ends_where_an_object_has_changed_and_where_reading_is_not_allowed_any_more_under_every_policy) {
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  const dataset samples = there("train-{0..2}.tar?signature=hush");
  server_.put("train-1.tar", shard_of(1));
  seen_run ended = testing::run_all(samples, options, fields());
  EXPECT_EQ(ended.failed, errc::changed);
  EXPECT_THAT(ended.message, HasSubstr("/train-1.tar"));
  server_.set_rule([](const served_request&) { return http_fault{.what = http_fault::kind::status, .status = 403}; });
  ended = testing::run_all(samples, options, fields());
  EXPECT_EQ(ended.failed, errc::permission);
  EXPECT_THAT(ended.message, HasSubstr("403"));
  EXPECT_THAT(ended.message, Not(HasSubstr("hush")));
}

TEST_F(remote_epoch, opens_shards_by_their_index_while_they_are_what_they_were) {
  std::vector<index_report> reports;
  const auto opened = [&](const std::string& name, index_use use = index_use::check) {
    reports.clear();
    return open(server_.address(name),
                {.index = {.use = use,
                           .directory = (folder_.path() / "kept").string(),
                           .on_report = [&](const index_report& each) { reports.push_back(each); }},
                 .remote = {.allow_http = true}});
  };
  const loader_options options = testing::small_options();
  const seen_run tar = testing::run_all(here("train-{0..2}.tar"), options, fields());
  EXPECT_EQ(testing::run_all(opened("train-{0..2}.tar?signature=one"), options, fields()).batches, tar.batches);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].what, index_report::outcome::written);
  for (const index_use use : {index_use::check, index_use::trust}) {
    const std::uint64_t before = server_.requests();
    const dataset again = opened("train-{0..2}.tar?signature=two", use);
    EXPECT_EQ(server_.requests() - before, shards) << "each shard is looked at, and nothing is read of it";
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].what, index_report::outcome::used);
    EXPECT_EQ(testing::run_all(again, options, fields()).batches, tar.batches);
    EXPECT_THAT(again.name(3), ::testing::AllOf(HasSubstr("/train-0.tar/3"), Not(HasSubstr("signature"))));
  }
  // Of the same size, of another content.
  const dataset held = opened("train-{0..2}.tar");
  put("train-2.tar", shard_of(7).substr(0, shard_of(2).size()));
  EXPECT_EQ(testing::run_all(held, options, fields()).failed, errc::changed);
  put("train-2.tar", shard_of(3));
  EXPECT_EQ(testing::run_all(opened("train-{0..2}.tar"), options, fields()).batches,
            testing::run_all(here("train-{0..2}.tar"), options, fields()).batches);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].what, index_report::outcome::written);
  EXPECT_THAT(reports[0].why, HasSubstr("/train-2.tar has changed since"));
}

TEST_F(remote_epoch, opens_shards_by_an_index_that_lies_beside_them) {
  const loader_options options = testing::small_options();
  const seen_run tar = testing::run_all(here("train-{0..2}.tar"), options, fields());
  std::uint64_t before = server_.requests();
  const auto opens_with = [&](std::uint64_t wanted, const char* why) {
    before = server_.requests();
    const dataset opened = there("train-{0..2}.tar?signature=hush");
    EXPECT_EQ(server_.requests() - before, wanted) << why;
    EXPECT_EQ(testing::run_all(opened, options, fields()).batches, tar.batches) << why;
    return opened;
  };
  // Without one: it is looked for, ours and DALI's; each shard is looked at, opened, and read in two steps.
  opens_with(2 + 4 * shards, "no index");
  // DALI's. The fields of these shards lie behind one another in their order.
  std::vector<std::string> paths;
  for (int i = 0; i < shards; ++i) paths.push_back((folder_.path() / ("train-" + std::to_string(i) + ".tar")).string());
  std::vector<std::string> theirs;
  {
    const auto written = datasets::write_indexes(paths, {}, {});
    const std::string content = testing::file_text(written.at(0).path);
    const auto parsed = datasets::parse_shard_indexes(std::as_bytes(std::span(content)));
    for (const datasets::indexed_shard& each : parsed.shards) {
      std::string text = "v1.2 " + std::to_string(each.index.ends.size()) + "\n";
      std::uint32_t begin = 0;
      for (std::size_t k = 0; k < each.index.ends.size(); ++k) {
        for (; begin < each.index.ends[k]; ++begin) {
          const auto& part = each.index.records[begin];
          const std::string& field = each.index.fields[part.field()];
          text += (text.back() == '\n' ? "" : " ") + field + " " + std::to_string(part.offset()) + " " +
                  std::to_string(part.bytes()) + " " + std::to_string(k) + "." + field;
        }
        text += "\n";
      }
      server_.put(each.name.substr(0, each.name.find('.')) + ".idx", text);
      theirs.push_back(text);
    }
    opens_with(2 + 4 * shards,
               "each shard and each of DALI's is looked at, these are read, and a header of each shard");
    server_.put("train-2.idx", theirs[1]);
    EXPECT_THAT(opens_with(2 + 4 * shards + 2 * shards, "DALI's of another shard").notes(),
                ::testing::Contains(::testing::AllOf(HasSubstr("/train-2.idx: it has places that are not in the shard"),
                                                     Not(HasSubstr("hush")))));
    // Ours comes first.
    server_.put("train.index", content);
    const dataset opened =
        opens_with(2 + shards + 1 + shards, "each shard is looked at, the index is read, and a header of each");
    EXPECT_TRUE(opened.notes().empty());
    EXPECT_THAT(opened.name(3), HasSubstr("/train-0.tar/3"));
    // What was not found here is not kept: a wrong one would stay.
    index_report reported;
    const index_options keeping{.use = index_use::check,
                                .directory = (folder_.path() / "kept").string(),
                                .on_report = [&](const index_report& each) { reported = each; }};
    for (int times = 0; times < 2; ++times) {
      static_cast<void>(open(server_.address("train-{0..2}.tar"), {.index = keeping, .remote = {.allow_http = true}}));
      EXPECT_EQ(reported.what, index_report::outcome::none);
      EXPECT_THAT(reported.why, HasSubstr("beside the shards"));
    }
    // Members of other names, where it says that there are members as large.
    auto renamed = parsed.shards;
    std::replace(renamed[2].index.fields.begin(), renamed[2].index.fields.end(), std::string("bin"),
                 std::string("raw"));
    const std::vector<std::byte> wrong = datasets::write_shard_indexes(renamed, parsed.at_marker);
    server_.put("train.index", {reinterpret_cast<const char*>(wrong.data()), wrong.size()});
    const dataset walked = there("train-{0..2}.tar");
    EXPECT_THAT(walked.notes(), ::testing::Contains(HasSubstr("/train-2.tar is another one")));
    EXPECT_EQ(testing::run_all(walked, options, fields()).batches, tar.batches);
    server_.put("train.index", content);
  }
  // One that was made anew, and is as large.
  testing::archive first;
  first.file("first.txt", "");
  const std::string with_another = std::string(first.bytes()) + shard_of(2);
  server_.put("train-2.tar", with_another.substr(0, shard_of(2).size()));
  EXPECT_THAT(there("train-{0..2}.tar").notes(), ::testing::Contains(HasSubstr("/train-2.tar is another one")));
  server_.put("train-2.tar", shard_of(2));
  // A shard of another size has another index.
  put("train-1.tar", shard_of(1).append(512, '\0'));
  const dataset stale = there("train-{0..2}.tar");
  EXPECT_THAT(stale.notes(), ::testing::Contains(HasSubstr("/train.index: it has train-1.tar with another size")));
  EXPECT_EQ(testing::run_all(stale, options, fields()).batches, tar.batches);
  server_.put("train.index", "no index");
  server_.put("train-0.idx", "v1.2 x");
  EXPECT_THAT(there("train-{0..2}.tar").notes(), ::testing::Contains(HasSubstr("/train-0.idx: a line of it")));
  // Where there is one that is kept here, nobody else's is asked for.
  const index_options kept{.use = index_use::check, .directory = (folder_.path() / "kept").string()};
  static_cast<void>(open(server_.address("train-{0..2}.tar"), {.index = kept, .remote = {.allow_http = true}}));
  before = server_.requests();
  static_cast<void>(open(server_.address("train-{0..2}.tar"), {.index = kept, .remote = {.allow_http = true}}));
  EXPECT_EQ(server_.requests() - before, shards);
}

TEST_F(remote_epoch, opens_shards_whatever_is_answered_where_an_index_might_be) {
  const loader_options options = testing::small_options();
  const seen_run tar = testing::run_all(here("train-{0..2}.tar"), options, fields());
  using kind = http_fault::kind;
  const http_fault faults[] = {{.what = kind::status, .status = 400},
                               {.what = kind::status, .status = 405},
                               {.what = kind::status, .status = 500},
                               {.what = kind::status, .status = 200, .body = "<html>"},
                               {.what = kind::no_http}};
  for (const http_fault& fault : faults) {
    for (const std::string_view ending : {".index", ".idx"}) {
      server_.set_rule(
          [&, ending](const served_request& asked) { return asked.target.ends_with(ending) ? fault : http_fault(); });
      const dataset opened =
          there("train-{0..2}.tar", {.allow_http = true, .patience = std::chrono::milliseconds(1'000)});
      EXPECT_THAT(opened.notes(), ::testing::ElementsAre(::testing::AllOf(HasSubstr("an index is not used: "),
                                                                          HasSubstr(std::string(ending)))))
          << fault.status;
      EXPECT_EQ(testing::run_all(opened, options, fields()).batches, tar.batches) << fault.status;
    }
  }
  server_.set_rule({});
}

TEST_F(remote_epoch, keeps_no_index_where_a_server_does_not_tell_one_object_from_the_next) {
  std::vector<index_report> reports;
  const auto outcome_with = [&](const std::string& headers) {
    server_.set_rule([headers](const served_request&) {
      return http_fault{.what = http_fault::kind::untagged, .headers = headers};
    });
    reports.clear();
    static_cast<void>(open(server_.address("train-0.tar"),
                           {.index = {.use = index_use::check,
                                      .directory = (folder_.path() / "kept").string(),
                                      .on_report = [&](const index_report& each) { reports.push_back(each); }},
                            .remote = {.allow_http = true}}));
    EXPECT_EQ(reports.size(), 1U);
    return reports.empty() ? index_report::outcome::none : reports[0].what;
  };
  using outcome = index_report::outcome;
  EXPECT_EQ(outcome_with(""), outcome::none);
  EXPECT_THAT(reports[0].why, HasSubstr("/train-0.tar: the server gives it no ETag"));
  const std::string changed = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  EXPECT_EQ(outcome_with(changed), outcome::none) << "the server does not say what time it is";
  EXPECT_EQ(outcome_with(changed + "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"), outcome::none);
  EXPECT_EQ(outcome_with(changed + "Date: Sun, 06 Nov 1994 08:49:39 GMT\r\n"), outcome::written);
  EXPECT_EQ(outcome_with(changed + "Date: Sun, 06 Nov 1994 08:49:50 GMT\r\n"), outcome::used);
  EXPECT_EQ(outcome_with("Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\nDate: Sun, 06 Nov 1994 08:49:50 GMT\r\n"),
            outcome::written);
}

// A pack's head and rows may be one request over the bytes between them: what lies beside a pack may not.
TEST_F(remote_epoch, of_photo_packs_goes_through_the_least_budget_whatever_lies_beside_them) {
  testing::tar_writer made;
  std::vector<datasets::photo_place> places;
  for (int i = 0; i < 4; ++i) {
    const std::vector<std::byte> pack =
        pack_photo(testing::make_jpeg(testing::make_texture(static_cast<std::uint64_t>(i), 600, 650), {.quality = 90}));
    const std::string key = std::to_string(i);
    const testing::tar_place at = made.add_file(key + ".fjpg", pack);
    made.add_file(key + ".depth", std::string(700'000, 'd'));  // which nobody reads
    made.add_file(key + ".cls", key);
    places.push_back(stages::place_of_photo(pack).value());
    places.back().block = static_cast<std::uint32_t>(at.data_offset / 512);
  }
  made.add_file(std::string(datasets::photo_places_member), datasets::as_member(places));
  const std::vector<std::byte> shard = made.finish();
  put("photos.tar", {reinterpret_cast<const char*>(shard.data()), shard.size()});
  const std::vector<field> crops = {image("jpg").random_resized_crop(24, {0.05, 0.2}).as(dtype::u8), label("cls")};
  loader_options options = testing::small_options();
  options.batch_size = 2;
  options.epochs = 6;
  options.host_bytes_max = loader(there("photos.tar"), options, crops).plan().host_bytes_least;
  const seen_run files = testing::run_all(here("photos.tar"), options, crops);
  const seen_run objects = testing::run_all(there("photos.tar"), options, crops);
  EXPECT_EQ(objects.failed, std::nullopt) << objects.message;
  EXPECT_EQ(objects.batches, files.batches);
  EXPECT_LT(objects.stats.bytes_read, 6 * (shard.size() - 4 * 700'000)) << "no member between them was read";
}

// stop() waits for nothing that a server does or leaves undone: requests on their way, pauses before the next try, blocks of a cache.
TEST_F(remote_epoch, is_left_within_100_ms_whatever_a_server_does) {
  using kind = http_fault::kind;
  constexpr auto at_most = std::chrono::milliseconds(100);
  struct row {
    const char* what;
    http_fault fault;
  };
  const row rows[] = {
      {"a connection that is closed", {.what = kind::hang_up}},
      {"a store that is asked too much", {.what = kind::status, .status = 503}},
      {"one that says when to come again", {.what = kind::status, .status = 429, .headers = "Retry-After: 20\r\n"}},
      {"a body that ends early", {.what = kind::cut, .bytes = 100}},
      {"a body that goes no further", {.what = kind::stall, .bytes = 100}},
      {"nothing but a connection", {.what = kind::late, .wait = std::chrono::minutes(1)}},
      {"a byte now and then", {.what = kind::dripping, .wait = std::chrono::milliseconds(5)}},
      {"right answers", {.what = kind::none}},
  };
  const index_options index = {.use = index_use::check, .directory = (folder_.path() / "kept").string()};
  const auto opened = [&](const remote_options& remote) {
    return open(server_.address("train-{0..2}.tar"), {.index = index, .remote = remote});
  };
  static_cast<void>(opened({.allow_http = true}));
  int caches = 0;
  for (const auto& [what, fault] : rows) {
    for (const bool is_cached : {false, true}) {
      // A busy machine may be late once.
      std::chrono::nanoseconds least = std::chrono::hours(1);
      for (int tries = 0; tries < 5 && least > at_most; ++tries) {
        server_.set_rule({});
        remote_options remote{.allow_http = true};
        if (is_cached) {
          remote.cache = (folder_.path() / ("cache-" + std::to_string(caches++))).string();
          remote.cache_bytes = 64U << 20;
          remote.cache_block_bytes = 64U << 10;
        }
        const dataset samples = opened(remote);
        std::atomic<int> asked_for = 0;
        server_.set_rule([&, fault](const served_request& request) {
          // The first look at an object, by a byte, is answered.
          if (request.value("Range") == "bytes=0-0") return http_fault();
          ++asked_for;
          return fault;
        });
        loader running(samples, testing::small_options(), fields());
        testing::trainer waiting(running);
        const auto asked = waiting.ask();
        while (asked_for == 0) std::this_thread::yield();
        const auto began = std::chrono::steady_clock::now();
        running.stop();
        least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - began);
        waiting.wait();
        EXPECT_TRUE(asked->completed) << what;
        server_.set_rule({});
      }
      EXPECT_LT(least, at_most) << what << (is_cached ? ", into a cache" : "");
    }
  }
}

TEST_F(remote_epoch, is_refused_over_http_unless_that_is_allowed_and_says_what_is_missing) {
  const auto said = [&](errc code, const std::string& name, const remote_options& options) {
    return testing::message_of(code, [&] { static_cast<void>(there(name, options)); });
  };
  EXPECT_THAT(said(errc::usage, "train-0.tar?s=hush", {}),
              ::testing::AllOf(HasSubstr("allow_http"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said(errc::not_found, "train-7.tar?s=hush", {.allow_http = true}),
              ::testing::AllOf(HasSubstr("404"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said(errc::usage, "train-*.tar", {.allow_http = true}), HasSubstr("braces"));
}

}  // namespace
}  // namespace leat
