// The command over HTTP and TLS.
#include "tests/datasets/archive.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(remote, an_epoch_over_tls_has_the_digest_of_the_files_and_shows_no_secret) {
  const temporary_directory folder;
  fault_server server(fault_server::transport::tls);
  for (const char* const name : {"a-0.tar", "a-1.tar"}) {
    archive made;
    for (int i = 0; i < 10; ++i)
      made.file(std::to_string(i) + ".cls", std::to_string(i)).file(std::to_string(i) + ".txt", name);
    server.put(name, made.end().bytes());
    write_file(folder.path() / name, made.bytes());
  }
  const std::string ca = write_file(folder.path() / "ca.pem", server.certificate());
  const std::string pattern = server.address("a-{0..1}.tar?signature=hush");
  const auto epoch = [&](const std::string& source, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"epoch", source, "--batch-size", "4", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const ended files = epoch((folder.path() / "a-{0..1}.tar").string(), {});
  const ended objects = epoch(pattern, {"--ca-file", ca});
  ASSERT_EQ(objects.exit_code, 0) << objects.err;
  EXPECT_EQ(objects.json().at("digest"), files.json().at("digest"));
  EXPECT_EQ(objects.json().at("samples"), 20);
  const ended untrusted = epoch(pattern, {});
  EXPECT_NE(untrusted.exit_code, 0);
  EXPECT_THAT(untrusted.err, HasSubstr("name that with --ca-file"));
  const ended inspected = run({"inspect", pattern, "--ca-file", ca});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  for (const ended* each : {&objects, &untrusted, &inspected})
    EXPECT_THAT(each->out + each->err, Not(HasSubstr("hush")));
}

TEST(remote, a_cache_is_filled_by_an_epoch_listed_verified_and_dropped) {
  const temporary_directory folder;
  fault_server server;
  archive made;
  for (int i = 0; i < 10; ++i) made.file(std::to_string(i) + ".cls", std::to_string(i));
  server.put("a.tar", made.end().bytes());
  const std::string cache = (folder.path() / "cache").string();
  EXPECT_EQ(run({"cache", "ls", cache}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(cache)) << "looking at it does not make it";
  const auto epoch = [&] {
    return run({"epoch", server.address("a.tar?signature=hush"), "--allow-http", "--batch-size", "4", "--json",
                "--cache", cache, "--cache-bytes", "8MiB"});
  };
  const ended cold = epoch();
  ASSERT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_EQ(cold.json().at("remote").at("cache"), "on");
  const ended warm = epoch();
  ASSERT_EQ(warm.exit_code, 0) << warm.err;
  EXPECT_EQ(warm.json().at("digest"), cold.json().at("digest"));
  EXPECT_EQ(warm.json().at("remote").at("requests"), 0);
  EXPECT_GT(warm.json().at("remote").at("bytes_from_cache"), 0);
  EXPECT_EQ(run({"epoch", server.address("a.tar"), "--allow-http", "--cache", cache}).exit_code, 2);
  const auto words = [&](const std::string& where) {
    return run({"epoch", server.address("a.tar?signature=hush"), "--allow-http", "--batch-size", "4", "--cache", where,
                "--cache-bytes", "8MiB"});
  };
  EXPECT_THAT(words(cache).out, AllOf(ContainsRegex("network +0 requests"), ContainsRegex("cache +.* read from it"),
                                      Not(HasSubstr("hush"))));
  const std::filesystem::path shared = folder.path() / "shared";
  std::filesystem::create_directory(shared);
  std::filesystem::permissions(shared, std::filesystem::perms::all);
  const ended without = words(shared.string());
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, AllOf(ContainsRegex("network +[1-9]"), ContainsRegex("cache +off: .*chmod 700")));
  const ended listed = run({"cache", "ls", cache, "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(listed.json().at("objects").at(0).at("name"), server.address("a.tar"));
  EXPECT_EQ(listed.json().at("cached_bytes"), 12'288) << "ten members of two blocks, and the end: three pages";
  EXPECT_THAT(run({"cache", "verify", cache}).out, HasSubstr("1 block, 0 damaged"));
  for (const auto& each : std::filesystem::directory_iterator(cache)) {
    if (each.path().extension() == ".data") write_file(each.path(), std::string(12'288, 'x'));
  }
  const ended damaged = run({"cache", "verify", cache});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("1 block, 1 damaged"));
  EXPECT_EQ(run({"cache", "drop", cache, "https://elsewhere/"}).exit_code, 2);
  EXPECT_THAT(run({"cache", "drop", cache, "https://elsewhere/*.tar"}).err, HasSubstr("patterns are not expanded"));
  EXPECT_THAT(run({"cache", "drop", "--help"}).out, HasSubstr("leat cache drop /nvme/leat"));
  EXPECT_EQ(run({"cache", "drop", cache}).exit_code, 0);
  EXPECT_EQ(run({"cache", "ls", cache, "--json"}).json().at("objects").size(), 0U);
  // What was fetched before it was wanted.
  const auto fill = [&](const std::string& bytes) {
    return run({"cache", "warm", cache, server.address("a.tar?signature=hush"), "--allow-http", "--cache-bytes", bytes,
                "--json"});
  };
  const ended small = fill("4KiB");
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_FALSE(small.json().at("whole"));
  EXPECT_THAT(small.err, ::testing::AllOf(HasSubstr("no room for more"), Not(HasSubstr("hush"))));
  const ended filled = fill("8MiB");
  ASSERT_EQ(filled.exit_code, 0) << filled.err;
  EXPECT_EQ(filled.json().at("fetched_blocks"), 1);
  EXPECT_EQ(filled.json().at("bytes"), made.bytes().size());
  EXPECT_EQ(fill("8MiB").json().at("fetched_blocks"), 0);
  const std::uint64_t before = server.requests();
  EXPECT_EQ(epoch().json().at("digest"), cold.json().at("digest"));
  EXPECT_EQ(server.requests() - before, 1U) << "it is opened, and no more";
}

TEST(remote, an_index_is_written_beside_shards_by_index_and_by_pack_and_opened_by) {
  const temporary_directory folder;
  fault_server server;
  for (int shard = 0; shard < 3; ++shard) {
    archive made;
    for (int i = 0; i < 10; ++i) made.file(std::to_string(i) + ".cls", std::to_string(shard));
    const std::string name = "a-" + std::to_string(shard) + ".tar";
    server.put(name, made.end().bytes());
    server.put("bucket/set/" + name, made.bytes());
    write_file(folder.path() / name, made.bytes());
  }
  const auto epoch = [&](const std::string& source) {
    return run({"epoch", source, "--allow-http", "--batch-size", "4", "--json", "--index-use", "off"})
        .json()
        .at("digest");
  };
  const auto digest = epoch((folder.path() / "a-*.tar").string());
  const ended indexed = run({"index", folder.path().string(), "--json"});
  ASSERT_EQ(indexed.exit_code, 0) << indexed.err;
  const nlohmann::json written = indexed.json().at("indexes");
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written.at(0).at("path"), (folder.path() / "a.index").string());
  EXPECT_EQ(written.at(0).at("shards"), 3);
  EXPECT_EQ(written.at(0).at("samples"), 30);
  const auto requests_of_epoch = [&] {
    const std::uint64_t before = server.requests();
    EXPECT_EQ(epoch(server.address("a-{0..2}.tar?signature=hush")), digest);
    return server.requests() - before;
  };
  const std::uint64_t without = requests_of_epoch();
  server.put("a.index", file_text(folder.path() / "a.index"));
  EXPECT_LE(requests_of_epoch(), without - 2)
      << "the index and a header of each shard are read, and no shard is opened to be walked";
  // From the store itself, to be copied there.
  EXPECT_EQ(run({"index", server.address("a-{0..2}.tar"), "--allow-http"}).exit_code, 2) << "it says where to";
  std::filesystem::create_directory(folder.path() / "to");
  const ended remote = run({"index", server.address("a-{0..2}.tar?signature=hush"), "--allow-http", "--to",
                            (folder.path() / "to").string()});
  ASSERT_EQ(remote.exit_code, 0) << remote.err;
  EXPECT_EQ(file_text(folder.path() / "to" / "a.index"), file_text(folder.path() / "a.index"));
  EXPECT_THAT(remote.out, Not(HasSubstr("hush")));
  std::filesystem::create_directory(folder.path() / "listed");
  const std::vector<std::string> of_store = {"--allow-http", "--anonymous", "--endpoint", server.address("")};
  const auto at_store = [&](std::vector<std::string> words) {
    words.insert(words.end(), of_store.begin(), of_store.end());
    return run(words);
  };
  const ended listed = at_store({"index", "s3://bucket/set/", "--to", (folder.path() / "listed").string()});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(file_text(folder.path() / "listed" / "a.index"), file_text(folder.path() / "a.index"));
  server.put("bucket/empty/a.txt", "no shard");
  const ended none = at_store({"index", "s3://bucket/empty/", "--to", (folder.path() / "listed").string()});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("it has no object *.tar directly in it"));
  // All that lies below it is cached.
  server.put("bucket/set/deep/x.txt", "x");
  const ended warm = at_store(
      {"cache", "warm", (folder.path() / "cache").string(), "s3://bucket/set/", "--cache-bytes", "64MiB", "--json"});
  ASSERT_EQ(warm.exit_code, 0) << warm.err;
  EXPECT_EQ(warm.json().at("objects"), 4);
  EXPECT_EQ(warm.json().at("fetched_blocks"), 4);
  const ended packed = run({"pack", (folder.path() / "a-*.tar").string(),
                            (folder.path() / "to" / "b-{0..1}.tar").string(), "--write-index"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("indexed in " + (folder.path() / "to" / "b.index").string()));
  EXPECT_EQ(run({"index", (folder.path() / "none-*.tar").string()}).exit_code, 2);
  write_file(folder.path() / "to" / "b-1.tar", "no tar");
  EXPECT_EQ(run({"index", (folder.path() / "to").string()}).exit_code, 1);
}

TEST(remote, doctor_measures_a_store_and_says_where_keys_were_found_and_what_is_wrong) {
  const temporary_directory folder;
  fault_server server;
  server.put("bucket/a.tar", std::string(1'000'000, 'x'));
  server.put("a.tar", std::string(300, 'x'));
  const auto doctor = [&](const std::string& address, const std::vector<std::string>& environment = {}) {
    return command({"doctor", address, "--allow-http", "--endpoint", server.address(""), "--json"},
                   command::streams::pipes, environment)
        .wait();
  };
  const std::vector<std::string> keys = {"AWS_ACCESS_KEY_ID=KEYID", "AWS_SECRET_ACCESS_KEY=hush"};
  const ended found = doctor("s3://bucket/a.tar", keys);
  ASSERT_EQ(found.exit_code, 0) << found.err << found.out;
  EXPECT_THAT(server.all_headers(), HasSubstr("Credential=KEYID/"));
  const nlohmann::json store = found.json().at("stores").at(0);
  EXPECT_EQ(store.at("keys_from"), "AWS_ACCESS_KEY_ID");
  EXPECT_EQ(store.at("region"), "us-east-1");
  EXPECT_EQ(store.at("bytes"), 1'000'000);
  EXPECT_EQ(store.at("latencies_s").size(), 30U);
  EXPECT_TRUE(std::is_sorted(store.at("latencies_s").begin(), store.at("latencies_s").end()));
  ASSERT_EQ(store.at("by_blocks").size(), 3U);
  for (const auto& [rate, connections] : {std::pair(0U, 1), std::pair(1U, 4), std::pair(2U, 16)}) {
    EXPECT_EQ(store.at("by_blocks").at(rate).at("connections"), connections);
    EXPECT_EQ(store.at("by_blocks").at(rate).at("bytes_each"), 1'000'000) << "no more than there is";
    EXPECT_GE(store.at("by_blocks").at(rate).at("fetches"), connections);
  }
  EXPECT_GT(store.at("by_samples").at("fetches"), 0);
  // An object that is smaller than a sample, of no bucket.
  const ended plain = doctor(server.address("a.tar?signature=hush"));
  ASSERT_EQ(plain.exit_code, 0) << plain.err << plain.out;
  EXPECT_EQ(plain.json().at("stores").at(0).at("keys_from"), "");
  // Of a folder its first object.
  const ended first = doctor("s3://bucket/", keys);
  ASSERT_EQ(first.exit_code, 0) << first.err << first.out;
  EXPECT_EQ(first.json().at("stores").at(0).at("bytes"), 1'000'000);
  // What is wrong is said, and where keys were looked for.
  const ended missing = doctor("s3://bucket/b.tar", keys);
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.out, ::testing::AllOf(HasSubstr("404"), HasSubstr("check bucket, name and endpoint")));
  const ended keyless = doctor(
      "s3://bucket/a.tar", {"AWS_ACCESS_KEY_ID=", "HOME=" + folder.path().string(), "AWS_EC2_METADATA_DISABLED=true"});
  EXPECT_EQ(keyless.exit_code, 1);
  EXPECT_THAT(keyless.out, HasSubstr("no keys for s3:// were found"));
  server.set_rule([](const served_request&) {
    return http_fault{
        .what = http_fault::kind::status, .status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"};
  });
  const ended refused = doctor("s3://bucket/a.tar", keys);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, ::testing::AllOf(HasSubstr("AccessDenied"), HasSubstr("these keys may not read it")));
  // Reading stops in the middle of it.
  server.set_rule([](const served_request& asked) {
    return asked.number % 50 == 49 ? http_fault{.what = http_fault::kind::status, .status = 404} : http_fault();
  });
  const ended broken = doctor("s3://bucket/a.tar", keys);
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.out, HasSubstr("404"));
  for (const ended* each : {&found, &plain, &missing, &keyless, &refused, &broken})
    EXPECT_THAT(each->out + each->err, Not(HasSubstr("hush")));
}

TEST(remote, tokens_and_arrays_are_read_of_addresses_too) {
  const temporary_directory folder;
  fault_server server;
  const auto put = [&](const std::string& name, const std::string& content) {
    server.put(name, content);
    write_file(folder.path() / name, content);
  };
  put("t.bin", bytes_of(counting<std::uint16_t>(1'000)));
  for (int i = 0; i < 4; ++i) {
    put("a-" + std::to_string(i) + ".npy",
        npy_text(npy_dict("<i4", "8, 8"), bytes_of(std::vector<std::int32_t>(64, i))));
  }
  const auto digest = [&](const std::string& source, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"epoch", source, "--batch-size", "2", "--json", "--allow-http"};
    all.insert(all.end(), words.begin(), words.end());
    const ended of = run(all);
    EXPECT_EQ(of.exit_code, 0) << source << ": " << of.err;
    return of.exit_code == 0 ? of.json().at("digest").dump() : std::string();
  };
  const std::vector<std::string> windows = {"--tokens", "64"};
  const std::string here = digest((folder.path() / "t.bin").string(), windows);
  EXPECT_EQ(digest(server.address("t.bin?signature=hush"), windows), here);
  for (const char* const how : {"rows", "files"}) {
    const std::string of_files = digest((folder.path() / "a-{0..3}.npy").string(), {"--arrays", how});
    EXPECT_EQ(digest(server.address("a-{0..3}.npy"), {"--arrays", how}), of_files) << how;
  }
}

// Each line: what is wrong, where, and what to do. None of them gets as far as a connection.
TEST(remote, bad_options_addresses_and_variables_are_refused_in_words) {
  const temporary_directory folder;
  const std::string no_certificates = write_file(folder.path() / "none.pem", "nothing");
  const std::string cache = (folder.path() / "cache").string();
  const std::string https = "https://127.0.0.1:1/a.tar";
  const std::string s3 = "s3://bucket/a.tar";
  struct line {
    std::vector<std::string> arguments;
    std::string words;
    std::vector<std::string> environment = {};
  };
  const line lines[] = {
      {{https, "--header", "nonsense"},
       "a header is written with the server that it goes to, as 'https://host Authorization: Bearer ...'"},
      {{https, "--header", "https://h Host: x"}, "the header Host is set by leat itself; leave it out"},
      {{https, "--header", "http://h A: b"},
       "would go over http://, where others can read it; give https://, or --allow-http"},
      {{https, "--header", "https://h A: b\nc"}, "the value of the header A is empty, or has line ends"},
      {{https, "--header", "https://h Bad Name: b"}, "a header for https://h has no name such as Authorization"},
      {{https, "--patience", "0"}, "--patience '0' will not do; give a whole number from 1 to 86400"},
      {{https, "--patience", "soon"}, "--patience 'soon' will not do; give a whole number"},
      {{https, "--cache", ""}, "--cache '' will not do; give a DIR"},
      {{https, "--cache", cache}, "how many bytes the cache may take was not said; give --cache-bytes"},
      {{https, "--cache-bytes", "1GiB"}, "--cache-bytes was given, and no folder: give --cache too"},
      {{https, "--cache", cache, "--cache-bytes", "much"}, "--cache-bytes 'much' will not do; give a size like 512MiB"},
      {{https, "--cache", cache, "--cache-bytes", "1GiB", "--cache-block-bytes", "3"},
       "--cache-block-bytes is 3; it is a multiple of 4096"},
      {{https, "--ca-file", "/nowhere"}, "/nowhere: no certificates in PEM can be read from it"},
      {{https, "--ca-file", no_certificates}, "none.pem: no certificates in PEM can be read from it"},
      {{s3, "--anonymous", "--endpoint", "nonsense"}, "nonsense: an endpoint is an address, as https://s3.example.org"},
      {{s3, "--anonymous", "--endpoint", "s3://other"}, "s3://other: an endpoint is an address"},
      {{s3, "--anonymous", "--endpoint", "http://127.0.0.1:1"},
       "http://127.0.0.1:1: what comes over http:// can be read and changed on its way; give https://, or "
       "--allow-http"},
      {{s3, "--anonymous", "--endpoint", "https://x{bucket}.h"},
       "{bucket} is what the host begins with, as in https://{bucket}.s3.example.org"},
      {{s3, "--anonymous", "--endpoint", "https://{bucket"},
       "this is no address of an object; write https://host/path"},
      {{s3, "--anonymous", "--endpoint", "https://me:hush@h"}, "an address with a user or a password is not read"},
      {{s3, "--anonymous", "--endpoint", "https://h?sig=hush"},
       "https://h: an endpoint has no query; leave out what follows its path"},
      {{s3, "--anonymous", "--region", "EU West"}, "'EU West' is no name of a region, as us-east-1 is"},
      {{s3}, "no keys for s3:// were found"},
      {{"s3://B_b/a.tar", "--anonymous"},
       "'B_b' is no name of a bucket, which has 3 to 63 small letters, digits, dots and hyphens"},
      {{"s3:///a.tar", "--anonymous"}, "write s3://bucket/key"},
      {{"http://127.0.0.1:1/a.tar"},
       "what comes over http:// can be read and changed on its way; give https://, or --allow-http"},
      {{"https://me:hush@h/a.tar"}, "an address with a user or a password is not read; give a signed one"},
      {{"https://h:99999/a.tar"}, "this is no address of an object; write https://host/path"},
      {{"ftp://h/a.tar"}, "leat reads local files, https:// and s3://"},
      {{"https://h.test/a.tar"},
       "https_proxy names a proxy of socks5://, and leat uses those of http:// only",
       {"https_proxy=socks5://me:hush@h:1"}},
      {{"https://h.test/a.tar"},
       "https_proxy is no address of a proxy; write http://host:port",
       {"https_proxy=http://h:99999"}},
      {{s3, "--anonymous"}, "x: an endpoint is an address", {"AWS_ENDPOINT_URL=x"}},
      {{s3, "--anonymous"}, "/nowhere: no certificates in PEM can be read from it", {"AWS_CA_BUNDLE=/nowhere"}},
      {{s3, "--anonymous"}, "'Bad Region' is no name of a region", {"AWS_REGION=Bad Region"}},
      {{s3}, "an access key for s3:// was given without its secret; give both", {"AWS_ACCESS_KEY_ID=id"}},
      {{https},
       "LEAT_CACHE_BYTES is 'much', which is no size, as 200GiB is",
       {"LEAT_CACHE=" + cache, "LEAT_CACHE_BYTES=much"}},
  };
  for (const auto& [given, words, variables] : lines) {
    std::vector<std::string> arguments = {"epoch", "--batch-size", "4"};
    arguments.insert(arguments.end(), given.begin(), given.end());
    // The first of a name is the one that holds: what the test's own environment has does not.
    std::vector<std::string> environment = variables;
    environment.push_back("HOME=" + folder.path().string());
    for (const char* const each :
         {"AWS_EC2_METADATA_DISABLED=true", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_PROFILE=",
          "AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_S3=", "AWS_REGION=", "AWS_CA_BUNDLE=", "AWS_ROLE_ARN=", "https_proxy=",
          "HTTPS_PROXY=", "all_proxy=", "ALL_PROXY=", "no_proxy=", "NO_PROXY=", "LEAT_CACHE=", "LEAT_CACHE_BYTES="}) {
      environment.emplace_back(each);
    }
    const ended refused = command(arguments, command::streams::pipes, environment).wait();
    EXPECT_NE(refused.exit_code, 0) << given.front();
    EXPECT_THAT(refused.err, HasSubstr(words));
    EXPECT_THAT(refused.out + refused.err, Not(HasSubstr("hush")));
  }
}

}  // namespace
}  // namespace leat::testing
