// Objects over HTTP and TLS: the source contract, and then each thing that a server does wrong. Each read ends with the right bytes or
// with an error that names it.
#include "io/remote/remote_source.hpp"

#include "base/base64.hpp"
#include "base/crc32c.hpp"
#include "base/crc64nvme.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/authorities.hpp"
#include "io/remote/connection_limit.hpp"
#include "io/remote/describe_objects.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/s3_listing.hpp"
#include "io/remote/sigv4.hpp"
#include "io/remote/slow_answers.hpp"
#include "io/ring/make_ring_loop.hpp"
#include "io/ring/preadv_loop.hpp"
#include "tests/io/loop_subject.hpp"
#include "tests/io/source_contract.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/stats.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using transport = fault_server::transport;
using wrong = http_fault::kind;

constexpr io::retry_options soon = {
    .tries_max = 4, .wait_first = std::chrono::milliseconds(1), .wait_max = std::chrono::milliseconds(4)};

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

remote_options options_for(const fault_server& server, const temporary_directory& folder) {
  remote_options options;
  options.allow_http = true;
  if (!server.certificate().empty()) {
    options.ca_file = (folder.path() / "ca.pem").string();
    std::ofstream(options.ca_file) << server.certificate();
  }
  return options;
}

class remote_subject final : public source_subject {
 public:
  remote_subject(std::shared_ptr<io::arena> memory, const running_loop::maker& make, transport how, bool has_cache)
      : server_(how), has_cache_(has_cache), running_({}, std::move(memory), make) {}
  ~remote_subject() override {
    running_.call([this] { source_.reset(); });
  }

  std::uint32_t add_file(const std::vector<std::byte>& contents) override {
    const auto number = static_cast<std::uint32_t>(objects_.size());
    server_.put(std::to_string(number), as_text(contents));
    objects_.push_back({io::parse_address(server_.address(std::to_string(number))), contents.size()});
    return number;
  }
  std::uint32_t add_missing_file() override {
    objects_.push_back({io::parse_address(server_.address("missing"))});
    return static_cast<std::uint32_t>(objects_.size() - 1);
  }
  void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) override {
    server_.put(std::to_string(file), as_text(contents));
  }
  void connect() override {
    remote_options options = options_for(server_, folder_);
    if (has_cache_) {
      options.cache = (folder_.path() / "cache").string();
      options.cache_bytes = 8U << 20;
      options.cache_block_bytes = 64U << 10;
    }
    description_.emplace(objects_, options);
    running_.call([this] { source_ = description_->connect(running_.loop()); });
    if (has_cache_) look_at_all();
  }
  [[nodiscard]] bool keeps_what_it_has_read() const override { return has_cache_; }
  [[nodiscard]] io::source& source() override { return *source_; }
  void call(const std::function<void()>& function) override { running_.call(function); }
  void run_until_zero(std::atomic<std::size_t>& left) override {
    for (std::size_t now = left.load(); now != 0; now = left.load()) left.wait(now);
  }

 private:
  // What was never looked at has no version, and is not cached.
  void look_at_all() {
    struct look : io::open_operation {
      std::atomic<bool> is_done{false};
    };
    std::deque<look> looks;
    for (std::uint32_t file = 0; file < objects_.size(); ++file) {
      look& each = looks.emplace_back();
      each.file = file;
      each.done = [](io::open_operation& ended) noexcept {
        auto& self = static_cast<look&>(ended);
        self.is_done = true;
        self.is_done.notify_all();
      };
      running_.call([&] { source_->start(each); });
      each.is_done.wait(false);
    }
  }

  temporary_directory folder_;
  fault_server server_;
  const bool has_cache_;
  std::vector<io::remote_object> objects_;
  std::optional<io::remote_description> description_;
  running_loop running_;
  std::unique_ptr<io::source> source_;
};

source_maker remote_on(std::string name, const running_loop::maker& make, transport how, bool has_cache = false) {
  return {std::move(name), [make, how, has_cache](std::shared_ptr<io::arena> memory) {
            return std::make_unique<remote_subject>(std::move(memory), make, how, has_cache);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    remote, source_contract,
    ::testing::Values(
        remote_on(
            "http_on_the_ring", [](io::io_context& context) { return io::make_ring_loop(context, {}); },
            transport::plain),
        remote_on(
            "https_on_preadv", [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); },
            transport::tls),
        remote_on(
            "by_a_cache_on_the_ring", [](io::io_context& context) { return io::make_ring_loop(context, {}); },
            transport::plain, true),
        remote_on(
            "by_a_cache_on_preadv", [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); },
            transport::plain, true)),
    name_of_maker);

/// One object of 100,000 bytes, and reads of it by a client that is soon out of patience.
class remote_faults : public ::testing::Test {
 protected:
  remote_faults() { server_.put("a.bin", content_); }
  ~remote_faults() override {
    if (source_) running_.call([this] { source_.reset(); });
  }

  static std::string made(std::size_t bytes) {
    std::vector<std::byte> filled(bytes);
    fill_seeded(19, 0, filled);
    return as_text(filled);
  }

  void connect(const remote_options& options, const std::string& address) {
    description_.emplace(std::vector<io::remote_object>{{io::parse_address(address)}}, options, soon);
    running_.call([this] { source_ = description_->connect(running_.loop()); });
  }
  void connect() { connect({.allow_http = true}, server_.address("a.bin?secret=hush")); }
  void fail_with(const http_fault& plan, std::uint64_t requests = ~std::uint64_t{0}) {
    server_.set_rule([plan, requests, first = server_.requests()](const served_request& asked) {
      return asked.number - first < requests ? plan : http_fault();
    });
  }

  struct one_read : io::read_operation {
    std::vector<std::byte> memory;
    std::atomic<bool> is_done{false};
  };
  static std::unique_ptr<one_read> make(std::uint64_t from, std::uint64_t count) {
    auto read = std::make_unique<one_read>();
    read->offset = from;
    read->bytes = count;
    read->memory.assign(count + 64, std::byte{0xDB});
    read->into = {std::span(read->memory).first(count), io::read_target::no_piece};
    read->done = [](io::read_operation& ended) noexcept {
      auto& self = static_cast<one_read&>(ended);
      self.is_done = true;
      self.is_done.notify_all();
    };
    return read;
  }
  void start(one_read& read) {
    running_.call([&] {
      io::read_operation* const one[] = {&read};
      source_->start(one);
    });
  }
  std::unique_ptr<one_read> read(std::uint64_t from, std::uint64_t count) {
    auto made = make(from, count);
    start(*made);
    made->is_done.wait(false);
    EXPECT_EQ(
        std::count(made->memory.begin() + static_cast<std::ptrdiff_t>(count), made->memory.end(), std::byte{0xDB}), 64);
    return made;
  }
  // The error of a read whose source has said one.
  std::string failure_of(std::uint64_t from, std::uint64_t count) {
    const auto failed = read(from, count);
    EXPECT_NE(failed->failure, 0);
    if (failed->said == nullptr) return "nothing was said";
    EXPECT_THAT(failed->said->why.what(), Not(HasSubstr("hush")));
    return failed->said->why.what();
  }
  void expect_right(const one_read& read) {
    ASSERT_EQ(read.failure, 0) << (read.said ? read.said->why.what() : "");
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.data.data()), read.data.size()),
              content_.substr(read.offset, read.bytes));
  }
  // So many neighbours, all at once.
  void read_together(std::uint64_t count) {
    std::vector<std::unique_ptr<one_read>> reads;
    std::vector<io::read_operation*> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      reads.push_back(make(i * 900, 800));
      all.push_back(reads.back().get());
    }
    running_.call([&] { source_->start(all); });
    for (const auto& each : reads) {
      each->is_done.wait(false);
      expect_right(*each);
    }
  }
  struct one_open : io::open_operation {
    std::atomic<bool> is_done{false};
  };
  std::unique_ptr<one_open> open() {
    auto made = std::make_unique<one_open>();
    made->done = [](io::open_operation& ended) noexcept {
      auto& self = static_cast<one_open&>(ended);
      self.is_done = true;
      self.is_done.notify_all();
    };
    running_.call([&] { source_->start(*made); });
    made->is_done.wait(false);
    return made;
  }

  const std::string content_ = made(100'000);
  fault_server server_;
  running_loop running_{{},
                        std::make_shared<io::arena>(io::arena_options{.bytes_max = std::size_t{1} << 20}),
                        [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); }};
  std::optional<io::remote_description> description_;
  std::unique_ptr<io::source> source_;
};

TEST_F(remote_faults, what_passes_is_tried_again_and_the_bytes_are_right) {
  connect();
  for (const http_fault& plan : {http_fault{.what = wrong::hang_up}, http_fault{.what = wrong::status, .status = 503},
                                 http_fault{.what = wrong::status, .status = 429, .headers = "Retry-After: 0\r\n"},
                                 http_fault{.what = wrong::status, .status = 408}, http_fault{.what = wrong::cut}}) {
    fail_with(plan, 2);
    expect_right(*read(1'000, 50'000));
  }
  // What has come is not asked for again: so each cut brings the read further, however many there are.
  fail_with({.what = wrong::cut, .bytes = 7'000}, 14);
  expect_right(*read(1, 99'999));
  fail_with({.what = wrong::cut, .bytes = 1}, 3);
  expect_right(*read(99'990, 10));
}

TEST_F(remote_faults, an_answer_that_is_cut_off_at_any_byte_is_gone_on_with) {
  connect();
  for (std::size_t bytes = 0; bytes <= 257; ++bytes) {
    fail_with({.what = wrong::cut, .bytes = bytes}, 1);
    expect_right(*read(4'000 + bytes, 257));
  }
}

// All of its bytes together come later than silence_max: each is noticed, though a body's rest is waited for at once.
TEST_F(remote_faults, a_server_that_sends_byte_by_byte_is_not_silent) {
  connect({.allow_http = true, .silence_max = std::chrono::milliseconds(500)}, server_.address("a.bin"));
  fail_with({.what = wrong::dripping, .wait = std::chrono::milliseconds(5)});
  expect_right(*read(0, 150));
  EXPECT_EQ(server_.requests(), 1);
}

TEST_F(remote_faults, a_server_that_sends_byte_by_byte_is_waited_for_no_longer_than_patience_allows) {
  connect({.allow_http = true, .patience = std::chrono::milliseconds(300)}, server_.address("a.bin"));
  fail_with({.what = wrong::dripping, .wait = std::chrono::milliseconds(10)});
  EXPECT_THAT(failure_of(0, 50'000), HasSubstr("patience is at its end"));
  fail_with({});
  expect_right(*read(0, 50'000));
}

TEST_F(remote_faults, a_server_that_was_killed_is_named) {
  auto killed = std::make_unique<fault_server>();
  killed->put("a.bin", content_);
  const std::string address = killed->address("a.bin");
  connect({.allow_http = true}, address);
  expect_right(*read(0, 1'000));
  killed.reset();
  EXPECT_THAT(failure_of(0, 1'000),
              ::testing::AllOf(HasSubstr(address), HasSubstr("while connecting to 127.0.0.1"), HasSubstr("4 tries")));
}

// base64 of the sum, its highest byte first.
std::string told(std::uint64_t sum, unsigned bytes) {
  std::string text;
  for (unsigned left = bytes; left-- > 0;) text += static_cast<char>(sum >> (8 * left) & 0xFF);
  return to_base64(text);
}

// Of zlib and of boto3, bit by bit.
std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char each : text) {
    crc ^= static_cast<unsigned char>(each);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

TEST_F(remote_faults, an_object_of_a_store_that_is_wanted_whole_is_compared_with_its_checksum) {
  const auto connect_to_store = [this] {
    if (source_) running_.call([this] { source_.reset(); });
    description_.emplace(
        std::vector<io::remote_object>{{.where = io::parse_address(server_.address("a.bin")), .is_in_store = true}},
        remote_options{.allow_http = true}, soon);
    running_.call([this] { source_ = description_->connect(running_.loop()); });
    ASSERT_EQ(open()->failure, 0);
  };
  connect_to_store();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(content_));
  const std::string tag = "ETag: \"tag-1\"\r\n";
  const std::string wrong_sum = "x-amz-checksum-crc32c: " + told(crc32c(bytes) ^ 1, 4) + "\r\n";
  // Requests of a read, where its answers have these lines.
  const auto requests_of = [&](const std::string& lines, std::uint64_t from, std::uint64_t count) {
    server_.set_rule([=](const served_request& asked) {
      const bool is_whole = from == 0 && count == 100'000;
      EXPECT_EQ(asked.value("x-amz-checksum-mode"), is_whole ? "ENABLED" : "");
      EXPECT_EQ(asked.value("Range").empty(), is_whole);
      return http_fault{.what = wrong::untagged, .headers = lines};
    });
    const std::uint64_t before = server_.requests();
    expect_right(*read(from, count));
    return server_.requests() - before;
  };
  EXPECT_EQ(requests_of(tag + "x-amz-checksum-crc32c: " + told(crc32c(bytes), 4) + "\r\n", 0, 100'000), 1);
  EXPECT_EQ(crc32_of("123456789"), 0xCBF43926U);
  EXPECT_EQ(requests_of(tag + "x-amz-checksum-crc32: " + told(crc32_of(content_), 4) + "\r\n", 0, 100'000), 1);
  EXPECT_EQ(requests_of(tag + "x-amz-checksum-crc64nvme: " + told(crc64nvme(bytes), 8) + "\r\n", 0, 100'000), 1);
  EXPECT_EQ(requests_of(tag + "x-amz-checksum-crc32c: " + told(1, 4) + "-3\r\n", 0, 100'000), 1) << "of parts";
  EXPECT_EQ(requests_of(tag + wrong_sum + "x-amz-checksum-type: COMPOSITE\r\n", 0, 100'000), 1) << "of parts";
  EXPECT_EQ(
      requests_of(tag + "x-amz-checksum-crc32c: " + told(crc32c(bytes), 4) + "\r\nx-amz-checksum-type: FULL_OBJECT\r\n",
                  0, 100'000),
      1);
  EXPECT_EQ(requests_of(tag + "x-amz-checksum-sha1: " + told(1, 4) + "\r\n", 0, 100'000), 1) << "not computed";
  EXPECT_EQ(requests_of(tag + wrong_sum, 0, 99'999), 1) << "of a range it says nothing";

  const auto wrong_for = [&](std::uint64_t requests) {
    server_.set_rule([=, first = server_.requests()](const served_request& asked) {
      return asked.number - first < requests ? http_fault{.what = wrong::untagged, .headers = tag + wrong_sum}
                                             : http_fault();
    });
  };
  wrong_for(2);
  const std::uint64_t before = server_.requests();
  expect_right(*read(0, 100'000));
  EXPECT_EQ(server_.requests() - before, 3) << "it is asked for again";
  wrong_for(100);
  const auto failed = read(0, 100'000);
  ASSERT_NE(failed->said, nullptr);
  EXPECT_EQ(failed->said->whose, io::fault::sample);
  EXPECT_EQ(failed->said->why.code(), errc::corrupt);
  EXPECT_THAT(failed->said->why.what(), ::testing::AllOf(HasSubstr("/a.bin at offset 0"),
                                                         HasSubstr("x-amz-checksum-crc32c"), HasSubstr("3 times")));
  EXPECT_EQ(server_.requests() - before, 6);
  // An answer that is cut is gone on with by a range, and the sum is that of both together.
  for (const std::string& lines : {"x-amz-checksum-crc32c: " + told(crc32c(bytes), 4) + "\r\n", wrong_sum}) {
    const std::uint64_t first = server_.requests();
    server_.set_rule([=](const served_request& asked) {
      return asked.number == first ? http_fault{.what = wrong::cut, .headers = lines, .bytes = 777} : http_fault();
    });
    expect_right(*read(0, 100'000));
    EXPECT_EQ(server_.requests() - first, lines == wrong_sum ? 3 : 2);
  }
  // It was replaced by a larger one, and the server does not look at If-Match.
  server_.set_rule([](const served_request&) { return http_fault{.what = wrong::untagged}; });
  server_.put("a.bin", content_ + content_);
  connect_to_store();
  server_.put("a.bin", content_);
  EXPECT_EQ(read(0, 200'000)->failure, ESTALE);
}

// It is of the whole object, whatever part of it was asked for.
TEST_F(remote_faults, a_checksum_that_is_not_of_what_was_asked_for_is_no_matter) {
  connect();
  fail_with({.what = wrong::untagged, .headers = "ETag: \"tag-1\"\r\nx-amz-checksum-crc32c: yZRlqg==\r\n"});
  expect_right(*read(5, 1'000));
}

TEST_F(remote_faults, a_server_that_had_ranges_when_the_object_was_opened_is_asked_for_them_again) {
  connect();
  ASSERT_EQ(open()->failure, 0);
  fail_with({.what = wrong::whole}, 3);
  expect_right(*read(5, 1'000));
  fail_with({.what = wrong::whole});
  EXPECT_THAT(failure_of(5, 10),
              ::testing::AllOf(HasSubstr("a request for a range with the whole object"), HasSubstr("(4 tries")));
}

TEST_F(remote_faults, what_does_not_pass_is_an_error_that_names_it) {
  connect();
  fail_with({.what = wrong::status, .status = 503});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("a.bin at offset 5, 10 bytes: 503 As Told (4 tries"));
  fail_with({.what = wrong::hang_up});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("closed the connection before it had answered"));
  fail_with({.what = wrong::whole});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("answers a request for a range with the whole object"));
  expect_right(*read(0, 100'000));  // The whole object was wanted.
  fail_with({.what = wrong::wrong_range});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("another range (bytes 4-13/100000) than bytes 5-14"));
  fail_with({.what = wrong::too_many});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("another range"));
  fail_with({.what = wrong::long_header});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("header is longer than 65536 bytes"));
  fail_with({.what = wrong::many_lines});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("header has more than 100 lines"));
  fail_with({.what = wrong::no_http});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("is not HTTP/1.1"));
  fail_with({.what = wrong::compressed});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("compressed"));
  fail_with({.what = wrong::status, .status = 403});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("403 As Told: reading it is not allowed"));
  fail_with({.what = wrong::status, .status = 418});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("418 As Told"));
  fail_with({.what = wrong::status, .status = 404});
  const auto missing = read(5, 10);
  ASSERT_NE(missing->said, nullptr);
  EXPECT_EQ(missing->said->whose, io::fault::unreadable) << "one object that is not there";
  fail_with({});
  expect_right(*read(5, 10));
}

TEST_F(remote_faults, what_is_announced_lies_in_the_cache_before_it_is_read) {
  const temporary_directory folder;
  connect({.allow_http = true,
           .cache = (folder.path() / "cache").string(),
           .cache_bytes = 1U << 20,
           .cache_block_bytes = 8U << 10},
          server_.address("a.bin"));
  ASSERT_EQ(open()->failure, 0);
  const auto counts = [&] {
    remote_stats now;
    description_->add_counts(now);
    return now;
  };
  // The first blocks by reads and announcements at the same time; then more of them than are fetched at a time.
  std::vector<std::unique_ptr<one_read>> reads;
  for (std::uint64_t at = 0; at < 20'000; at += 2'000) reads.push_back(make(at, 2'000));
  for (auto& each : reads) {
    each->memory.assign(4 * io::alignment_max_bytes, std::byte{});
    const auto address = reinterpret_cast<std::uintptr_t>(each->memory.data());
    const std::size_t skipped = (io::alignment_max_bytes - address % io::alignment_max_bytes) % io::alignment_max_bytes;
    each->into.bytes = std::span(each->memory).subspan(skipped, 3 * io::alignment_max_bytes);
  }
  running_.call([&] {
    for (auto& each : reads) {
      const extent ahead[] = {
          {.file = 0, .offset = each->offset, .stored_bytes = each->bytes, .decoded_bytes = each->bytes}};
      source_->hint(ahead);
      io::read_operation* const one[] = {each.get()};
      source_->start(one);
    }
    std::vector<extent> rest;
    for (std::uint64_t at = 20'000; at < 100'000; at += 500) rest.push_back({.offset = at, .stored_bytes = 500});
    rest.push_back({.offset = 99'999, .stored_bytes = 2});  // beyond its end, which is the reads' to find out
    source_->hint(rest);
  });
  for (const auto& each : reads) {
    each->is_done.wait(false);
    expect_right(*each);
  }
  constexpr std::uint64_t blocks = (100'000 + 8191) / 8192;
  while (counts().cached_blocks < blocks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(counts().cached_blocks, blocks);
  const std::uint64_t requests = counts().requests;
  EXPECT_EQ(requests, blocks + 1) << "each once, and the opening";
  for (auto& each : reads) {
    each->is_done = false;
    start(*each);
    each->is_done.wait(false);
    expect_right(*each);
  }
  EXPECT_EQ(counts().requests, requests);
}

TEST_F(remote_faults, an_object_that_is_another_one_ends_the_run) {
  connect();
  const auto opened = open();
  EXPECT_EQ(opened->failure, 0);
  EXPECT_EQ(opened->size_bytes, 100'000U);
  expect_right(*read(50, 1'000));
  EXPECT_THAT(server_.all_headers(), HasSubstr("If-Match: \"tag-1\""));
  server_.put("a.bin", made(100'000));  // As long, and with another tag.
  const auto changed = read(50, 1'000);
  EXPECT_EQ(changed->failure, ESTALE);
  ASSERT_NE(changed->said, nullptr);
  EXPECT_EQ(changed->said->whose, io::fault::environment);
  EXPECT_EQ(changed->said->why.code(), errc::changed);
  EXPECT_THAT(changed->said->why.what(), HasSubstr("has changed since the dataset was opened (412"));
  EXPECT_NE(open()->version, opened->version);
  // A server that does not say the size with the range: the end and the tag are compared all the same.
  fail_with({.what = wrong::status, .status = 206, .headers = "Content-Range: bytes 0-3/*\r\nETag: \"tag-1\"\r\n"});
  EXPECT_THAT(failure_of(0, 8), HasSubstr("another range (bytes 0-3/*)"));
  fail_with({.what = wrong::status,
             .status = 206,
             .headers = "Content-Range: bytes 0-7/*\r\nETag: \"tag-9\"\r\n",
             .body = "8 bytes."});
  EXPECT_THAT(failure_of(0, 8), HasSubstr("has changed"));
}

TEST_F(remote_faults, an_opening_that_waits_for_a_listing_to_be_tried_ends_though_another_loop_has_found_it_wrong) {
  std::vector<io::remote_object> objects;
  for (const char* const name : {"first", "second", "third", "not-as-listed"}) {
    const std::string tag = server_.put(name, content_);
    objects.push_back({.where = io::parse_address(server_.address(name)),
                       .size_bytes = content_.size(),
                       .listed_etag = std::string_view(name) == "not-as-listed" ? "\"another\"" : tag});
  }
  const auto is_held = std::make_shared<std::atomic<bool>>(true);
  server_.set_rule([is_held](const served_request& asked) {
    const bool is_first = asked.target.find("first") != std::string::npos;
    return is_first && *is_held ? http_fault{.what = wrong::status, .status = 503} : http_fault();
  });
  io::retry_options for_ever = soon;
  for_ever.tries_max = 1'000'000'000;
  description_.emplace(objects, remote_options{.allow_http = true}, for_ever);
  std::unique_ptr<io::source> another;
  running_.call([&] {
    source_ = description_->connect(running_.loop());
    another = description_->connect(running_.loop());
  });
  std::deque<one_open> opens;
  const auto start = [&](io::source& from, std::uint32_t file) -> one_open& {
    one_open& made = opens.emplace_back();
    made.file = file;
    made.done = [](io::open_operation& ended) noexcept {
      auto& self = static_cast<one_open&>(ended);
      self.is_done = true;
      self.is_done.notify_all();
    };
    running_.call([&] { from.start(made); });
    return made;
  };
  start(*source_, 0);
  const one_open& waiting = start(*source_, 1);
  start(*another, 3).is_done.wait(false);
  EXPECT_FALSE(waiting.is_done) << "it waits for the first";
  start(*source_, 2);
  *is_held = false;
  for (const one_open& each : opens) {
    each.is_done.wait(false);
    EXPECT_EQ(each.failure, 0);
    EXPECT_EQ(each.size_bytes, content_.size());
  }
  running_.call([&] { another.reset(); });
}

TEST_F(remote_faults, an_object_that_is_replaced_between_two_parts_of_a_read_is_not_put_together) {
  connect();
  server_.set_rule([first = true](const served_request&) mutable {
    return std::exchange(first, false) ? http_fault{.what = wrong::cut, .bytes = 600}
                                       : http_fault{.what = wrong::status, .status = 412};
  });
  EXPECT_THAT(failure_of(0, 1'000), HasSubstr("has changed"));
  EXPECT_THAT(server_.all_headers(), HasSubstr("Range: bytes=600-999"));
}

TEST(addresses, of_one_object_differ_in_what_signs_them_only) {
  using io::unsigned_target;
  EXPECT_EQ(unsigned_target("/a/b.tar"), "/a/b.tar");
  EXPECT_EQ(unsigned_target("/a?part=1&x=2"), "/a?part=1&x=2");
  EXPECT_EQ(unsigned_target("/a?versionId=7&X-Amz-Date=1&X-Amz-Signature=2&part=3"), "/a?versionId=7&part=3");
  EXPECT_EQ(unsigned_target("/a?X-Goog-Date=1&X-Goog-Signature=2"), "/a");
  EXPECT_EQ(unsigned_target("/a?AWSAccessKeyId=A&Expires=1&Signature=b%2F"), "/a");
  EXPECT_EQ(unsigned_target("/a?sv=2024&se=1&sr=b&sp=r&sig=abc&part=1"), "/a?part=1");
  // These words alone sign nothing.
  EXPECT_EQ(unsigned_target("/a?sp=1&expires=2&x-amz-date=3"), "/a?sp=1&expires=2&x-amz-date=3");
  EXPECT_EQ(unsigned_target("/a?"), "/a?");
}

TEST_F(remote_faults, redirects_are_followed_five_times_and_never_from_https_to_http) {
  connect();
  server_.put("b.bin", content_);
  server_.set_rule([](const served_request& asked) {
    return asked.target.starts_with("/a.bin")
               ? http_fault{.what = wrong::status, .status = 302, .headers = "Location: /b.bin?s=1\r\n"}
               : http_fault();
  });
  expect_right(*read(10, 100));
  const std::uint64_t before = server_.requests();
  expect_right(*read(20, 100));
  EXPECT_EQ(server_.requests() - before, 1U) << "where it leads is remembered";
  // Until the address is refused.
  server_.set_rule([](const served_request& asked) {
    return asked.target.starts_with("/b.bin") ? http_fault{.what = wrong::status, .status = 403} : http_fault();
  });
  expect_right(*read(30, 100));
  // Or does not pass; and a refusal of the first try there is asked about where it came from.
  for (const unsigned status : {503U, 404U}) {
    const auto leads = std::make_shared<int>(1);
    server_.set_rule([status, leads](const served_request& asked) {
      if (asked.target.starts_with("/b.bin")) return http_fault{.what = wrong::status, .status = status};
      return (*leads)-- > 0 ? http_fault{.what = wrong::status, .status = 302, .headers = "Location: /b.bin\r\n"}
                            : http_fault();
    });
    expect_right(*read(40, 100));
  }
  fail_with({.what = wrong::status, .status = 307, .headers = "Location: /a.bin\r\n"});
  EXPECT_THAT(failure_of(5, 10), HasSubstr("more than 5 redirects"));
  const io::address secure = io::parse_address("https://h/a");
  EXPECT_EQ(io::follow(secure, "http://h/a"), std::nullopt);
  EXPECT_EQ(io::follow(secure, "ftp://h/a"), std::nullopt);
  ASSERT_TRUE(io::follow(secure, "https://i:8443/b?sig=1"));
  EXPECT_EQ(io::follow(secure, "https://i:8443/b?sig=1")->shown, "https://i:8443/b");
}

TEST_F(remote_faults, a_read_that_is_cancelled_ends_at_once_whatever_the_server_does) {
  connect();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{20'000}}) {
    std::mutex guard;
    std::condition_variable arrived;
    bool is_there = false;
    server_.set_rule([&, bytes](const served_request&) {
      {
        const std::lock_guard lock(guard);
        is_there = true;
      }
      arrived.notify_all();
      return http_fault{.what = wrong::stall, .bytes = bytes};
    });
    const auto stalled = make(0, 50'000);
    start(*stalled);
    {
      std::unique_lock lock(guard);
      arrived.wait(lock, [&] { return is_there; });
    }
    running_.call([&] { source_->cancel(*stalled); });
    stalled->is_done.wait(false);
    EXPECT_EQ(stalled->failure, ECANCELED);
    server_.set_rule({});
  }
  expect_right(*read(5, 10));
}

TEST_F(remote_faults, a_server_that_falls_silent_is_asked_anew) {
  connect({.allow_http = true, .silence_max = std::chrono::milliseconds(100)}, server_.address("a.bin"));
  fail_with({.what = wrong::stall, .bytes = 500}, 1);
  expect_right(*read(0, 1'000));
}

TEST_F(remote_faults, connections_are_kept_and_no_more_of_them_are_opened_than_allowed) {
  connect({.allow_http = true, .connections_max = 3}, server_.address("a.bin"));
  read_together(100);
  EXPECT_LE(server_.connections(), 3U);
  EXPECT_EQ(server_.requests(), 100U);
}

TEST_F(remote_faults, a_read_that_is_later_than_nearly_all_others_is_asked_for_once_more) {
  connect();
  ASSERT_EQ(open()->failure, 0);
  const auto counts = [&] {
    remote_stats now;
    description_->add_counts(now);
    return now;
  };
  for (int i = 0; i < 3; ++i) read_together(100);
  // What is asked for twice is a fiftieth of all that has come. A busy machine may have used that up already.
  const auto earn_a_hedge = [&] {
    do read_together(100);
    while (0.02 * static_cast<double>(counts().bytes) < 800.0 * (static_cast<double>(counts().hedges) + 2));
  };
  std::uint64_t sent_twice = 0;
  for (const http_fault& slow :
       {http_fault{.what = wrong::stall, .bytes = 0}, http_fault{.what = wrong::stall, .bytes = 300},
        http_fault{.what = wrong::late, .wait = std::chrono::hours(1)},
        http_fault{.what = wrong::dripping, .wait = std::chrono::hours(1)}}) {
    earn_a_hedge();
    const remote_stats before = counts();
    fail_with(slow, 1);
    // It ends by the second answer: the first one's bytes do not come.
    expect_right(*read(900, 800));
    EXPECT_EQ(counts().hedges - before.hedges, 1U);
    sent_twice += counts().bytes - before.bytes - 800;
  }
  EXPECT_LE(sent_twice, 4 * 400U);
  EXPECT_EQ(counts().retries, 0U) << "none of them had failed";
  // Where the whole server is slow, the fiftieth is soon used up.
  fail_with({.what = wrong::late, .wait = std::chrono::milliseconds(150)});
  for (int i = 0; i < 4; ++i) read_together(100);
  EXPECT_LE(static_cast<double>(counts().hedges) * 800, 0.02 * static_cast<double>(counts().bytes) + 1'600);
}

TEST_F(remote_faults, a_read_that_is_cancelled_while_it_is_asked_for_twice_ends_at_once) {
  connect();
  for (int i = 0; i < 3; ++i) read_together(100);
  const auto hedges = [&] {
    remote_stats now;
    description_->add_counts(now);
    return now.hedges;
  };
  fail_with({.what = wrong::stall, .bytes = 100});
  const auto stalled = make(0, 800);
  start(*stalled);
  while (hedges() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running_.call([&] { source_->cancel(*stalled); });
  stalled->is_done.wait(false);
  EXPECT_EQ(stalled->failure, ECANCELED);
  server_.set_rule({});
  expect_right(*read(5, 10));
}

// Of 503 SlowDown a client makes fewer requests at a time, and more when it is answered again.
TEST_F(remote_faults, a_store_that_is_asked_too_much_is_asked_by_fewer_connections) {
  connect({.allow_http = true, .connections_max = 64}, server_.address("a.bin"));
  std::atomic<unsigned> refused{0};
  server_.set_rule([&](const served_request&) {
    return ++refused % 3 == 0 && refused < 60 ? http_fault{.what = wrong::status, .status = 503} : http_fault();
  });
  read_together(100);
  EXPECT_GE(refused, 60U);
  read_together(100);
}

TEST(connections, are_four_times_as_many_after_each_round_trip_to_a_store_that_is_far_and_was_never_refused) {
  io::connection_limit limit(256);
  constexpr std::uint64_t far = 30'000'000;
  for (const std::uint32_t wanted : {128U, 256U}) {
    for (std::uint32_t answers = limit.now(); answers > 0; --answers) limit.answered(far);
    EXPECT_EQ(limit.now(), wanted) << "the first answer counts already";
  }
  for (int i = 0; i < 1'000; ++i) limit.answered(far);
  EXPECT_EQ(limit.now(), 256U);
}

TEST(connections, are_half_as_many_after_a_refusal_and_one_more_after_as_many_answers) {
  io::connection_limit limit(100);
  EXPECT_EQ(limit.now(), 32U);
  for (int i = 0; i < 100; ++i) limit.answered(1'000'000);
  EXPECT_EQ(limit.now(), 32U) << "it answers at once";
  constexpr std::uint64_t after = 1'000'000'000;
  for (int i = 0; i < 4; ++i) limit.answered(after);
  EXPECT_EQ(limit.now(), 44U) << "until the first refusal";
  limit.refused(10, 20);
  EXPECT_EQ(limit.now(), 22U);
  limit.refused(19, 30);
  EXPECT_EQ(limit.now(), 22U) << "it was asked before";
  limit.refused(31, 40);
  EXPECT_EQ(limit.now(), 11U);
  for (int i = 0; i < 11; ++i) limit.answered(after);
  EXPECT_EQ(limit.now(), 11U);
  limit.answered(after);
  EXPECT_EQ(limit.now(), 12U);
  for (int i = 0; i < 20'000; ++i) limit.answered(after);
  EXPECT_EQ(limit.now(), 100U);
  for (int i = 0; i < 20; ++i) limit.refused(100 + static_cast<std::uint64_t>(i), 100 + static_cast<std::uint64_t>(i));
  EXPECT_EQ(limit.now(), 1U);
  EXPECT_EQ(io::connection_limit(3).now(), 3U);
}

TEST(connections, are_as_many_as_somebody_has_found_out_however_near_the_store_is) {
  io::connection_limit limit(256);
  for (int i = 0; i < 100; ++i) limit.answered(100'000);
  EXPECT_EQ(limit.now(), 32U) << "it is near";
  limit.set_most(64);
  EXPECT_EQ(limit.now(), 64U);
  limit.refused(1'000, 2'000);
  EXPECT_EQ(limit.now(), 32U);
  limit.set_most(128);
  EXPECT_EQ(limit.now(), 32U) << "a store that refused some decides";
  limit.set_most(16);
  EXPECT_EQ(limit.now(), 16U);
  for (int i = 0; i < 10'000; ++i) limit.answered(100'000);
  EXPECT_EQ(limit.now(), 16U);
}

TEST(slow_answers, are_those_beyond_99_of_100_of_their_size) {
  io::slow_answers answers;
  EXPECT_FALSE(answers.may_ask_again_for(1));
  for (std::uint64_t i = 1; i < 100; ++i) answers.add(1'000, i);
  EXPECT_EQ(answers.late_ns(1'000), ~std::uint64_t{0}) << "too few are known";
  for (std::uint64_t i = 0; i < 256; ++i) answers.add(1'000, i % 100 + 1);
  EXPECT_GE(answers.late_ns(1'000), 98U);
  EXPECT_LE(answers.late_ns(1'000), 100U);
  EXPECT_EQ(answers.late_ns(3'000'000), ~std::uint64_t{0}) << "of another size";
  EXPECT_TRUE(answers.may_ask_again_for(7'000));
  EXPECT_FALSE(answers.may_ask_again_for(1'000)) << "a fiftieth of 355,000 is gone";
}

// Empty where it is opened.
std::string why_not_opened(running_loop& running, const std::string& address, const remote_options& options,
                           const io::retry_options& retries) {
  const io::remote_description objects({{io::parse_address(address)}}, options, retries);
  std::atomic<std::size_t> left = 1;
  counted_open opened(0, left);
  std::unique_ptr<io::source> source;
  running.call([&] {
    source = objects.connect(running.loop());
    source->start(opened);
  });
  left.wait(1);
  std::string why = opened.failure == 0 ? "" : opened.said->why.what();
  running.call([&] { source.reset(); });
  return why;
}

// Which of the two a server does depends on what it makes of TLS' first message.
TEST(remote_tls, a_server_without_tls_is_named_as_one_and_given_up_soon) {
  running_loop running({}, std::make_shared<io::arena>(io::arena_options{.bytes_max = std::size_t{1} << 20}),
                       [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); });
  const io::retry_options patient{.tries_max = 1'000'000};
  const auto why_not = [&](const std::string& address) {
    return why_not_opened(running, address, {.silence_max = std::chrono::milliseconds(50)}, patient);
  };
  const std::string remedy = "; a server without TLS has an address of http://, which takes remote_options::allow_http";

  namespace asio = boost::asio;
  asio::io_context context;
  asio::ip::tcp::acceptor listening(context, {asio::ip::address_v4::loopback(), 0});
  const std::string port = std::to_string(listening.local_endpoint().port());
  {
    std::thread answering([&] {
      asio::ip::tcp::socket one = listening.accept();
      asio::write(one, asio::buffer(std::string_view("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")));
      std::array<char, 1> rest{};
      boost::system::error_code ended;
      while (!ended) one.read_some(asio::buffer(rest), ended);  // until the client closes
    });
    EXPECT_THAT(why_not("https://127.0.0.1:" + port + "/a"),
                HasSubstr("127.0.0.1:" + port + " answers without TLS" + remedy));
    answering.join();
  }
  // Now connections are taken by the kernel, and nobody says anything.
  EXPECT_THAT(why_not("https://127.0.0.1:" + port + "/a"),
              HasSubstr("no answer in time while TLS began, and no other connection to it has come about" + remedy));
}

// What a record holds, what is received at a time and what is handed on at a time are of sizes of their own.
TEST(remote_tls, bodies_come_whole_wherever_they_are_cut_and_however_slowly_they_come) {
  const temporary_directory folder;
  fault_server server(transport::tls);
  std::string content(700'000, 0);
  fill_seeded(3, 0, std::as_writable_bytes(std::span(content)));
  server.put("a", content);
  testing::seeded_random random(29);
  server.set_rule([&](const served_request&) {
    const std::uint64_t bytes = random.below(2) == 0 ? random.below(700'000) : 16'384 * random.below(40);
    const http_fault faults[] = {{},
                                 {},
                                 {.what = wrong::cut, .bytes = bytes},
                                 {.what = wrong::stall, .bytes = bytes},
                                 {.what = wrong::hang_up},
                                 {.what = wrong::late, .wait = std::chrono::milliseconds(2)}};
    return faults[random.below(std::size(faults))];
  });
  remote_options options = options_for(server, folder);
  options.silence_max = std::chrono::milliseconds(60);
  io::http_client client(options, {.tries_max = 1'000, .wait_max = std::chrono::milliseconds(5)});
  const io::address where = io::parse_address(server.address("a"));
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    testing::seeded_random part(seed);
    const std::uint64_t bytes = 1 + (seed % 4 == 0 ? part.below(100) : part.below(content.size()));
    const std::uint64_t offset = part.below(content.size() - bytes + 1);
    std::vector<std::byte> into(bytes);
    const auto wanted = std::make_shared<io::fetch>();
    wanted->where = &where;
    wanted->offset = offset;
    wanted->into = into;
    client.fetch_now(wanted);
    ASSERT_EQ(wanted->end, io::fetch_end::whole) << wanted->why;
    ASSERT_EQ(std::memcmp(into.data(), content.data() + offset, bytes), 0);
  });
}

TEST(remote_tls, a_certificate_of_an_unknown_authority_or_of_another_name_is_refused) {
  const temporary_directory folder;
  fault_server server(transport::tls);
  server.put("a", "abc");
  running_loop running({}, std::make_shared<io::arena>(io::arena_options{.bytes_max = std::size_t{1} << 20}),
                       [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); });
  const auto open = [&](const remote_options& options, const std::string& address) {
    return why_not_opened(running, address, options, soon);
  };
  const std::string address = server.address("a");
  const std::string by_number = "https://127.0.0.1" + address.substr(address.rfind(':'));
  const remote_options trusting = options_for(server, folder);
  EXPECT_EQ(open(trusting, address), "");
  EXPECT_EQ(open(trusting, by_number), "");
  EXPECT_THAT(open({}, address), HasSubstr("the certificate of localhost is not trusted: self-signed certificate"));
  // 127.0.0.2 is the same machine, and not in the certificate; the server listens on 127.0.0.1 alone.
  EXPECT_THAT(open(trusting, "https://127.0.0.2" + address.substr(address.rfind(':'))), HasSubstr("onnect"));
  EXPECT_THROW(static_cast<void>(io::http_client({.ca_file = "/no/such.pem"})), error);
  // Authorities are read once, and anew where the file was written anew.
  EXPECT_EQ(io::authorities_with(trusting.ca_file), io::authorities_with(trusting.ca_file));
  EXPECT_NE(io::authorities_with(trusting.ca_file), io::authorities_with({}));
  std::ofstream(trusting.ca_file) << "nothing of use";
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(io::authorities_with(trusting.ca_file)); }),
              ::testing::AllOf(HasSubstr(trusting.ca_file), HasSubstr("no certificates in PEM")));
  std::ofstream(trusting.ca_file) << server.certificate();
  EXPECT_EQ(open(trusting, address), "");
}

std::string hex(std::size_t number) {
  std::ostringstream out;
  out << std::hex << number;
  return out.str();
}

/// An environment of a test's own.
io::environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

// docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, and the suite's get-vanilla.
TEST(sigv4, signs_as_aws_has_published) {
  constexpr std::int64_t then = 1'369'353'600;  // 20130524T000000Z
  io::sigv4_signer signer({"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}, "us-east-1");
  const io::header_line host{"host", "examplebucket.s3.amazonaws.com"};
  const auto signature = [](const std::vector<io::header_line>& added) {
    const std::string& line = added.back().value;
    EXPECT_EQ(added.back().name, "authorization");
    return line.substr(line.find("Signature=") + 10);
  };
  const auto object = signer.sign("/test.txt", "", {host, {"range", "bytes=0-9"}}, then);
  EXPECT_EQ(signature(object), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_THAT(object.back().value, HasSubstr("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                                             "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "));
  EXPECT_EQ(signature(signer.sign("/", "lifecycle=", {host}, then)),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature(signer.sign("/", "max-keys=2&prefix=J", {host}, then)),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  io::sigv4_signer vanilla({"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}, "us-east-1", "service");
  EXPECT_EQ(signature(vanilla.sign("/", "", {{"host", "example.amazonaws.com"}}, 1'440'938'160)),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(s3, finds_its_keys_and_where_objects_lie) {
  const temporary_directory folder;
  const std::string credentials = (folder.path() / "credentials").string();
  const std::string config = (folder.path() / "config").string();
  std::ofstream(credentials)
      << "[default]\naws_access_key_id = A\naws_secret_access_key=B\n[other]\n# no\naws_access_key_id=C\n"
         "aws_secret_access_key=D\naws_session_token=T\n";
  std::ofstream(config) << "[default]\nregion=eu-west-1\ns3 =\n  region = wrong\n[profile far]\nrole_arn = x\n";
  const auto find = [&](const remote_options& options, std::map<std::string, std::string> more = {}) {
    more["AWS_SHARED_CREDENTIALS_FILE"] = credentials;
    more["AWS_CONFIG_FILE"] = config;
    more["AWS_EC2_METADATA_DISABLED"] = "true";
    return io::find_s3_access(options, environment_of(std::move(more)));
  };
  EXPECT_EQ(find({}).keys.secret, "B");
  EXPECT_EQ(find({}).region, "eu-west-1");
  EXPECT_EQ(find({}, {{"AWS_PROFILE", "other"}}).keys.token, "T");
  EXPECT_EQ(find({}, {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "F"}}).keys.secret, "F");
  EXPECT_EQ(find({.profile = "other"}, {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "F"}}).keys.secret, "D");
  EXPECT_EQ(find({.access_key_id = "G", .secret_access_key = "H"}).keys.id, "G");
  EXPECT_TRUE(find({.anonymous = true}).keys.empty());
  const auto said = [&](const remote_options& options, std::map<std::string, std::string> more) {
    try {
      static_cast<void>(find(options, std::move(more)));
    } catch (const error& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  EXPECT_THAT(said({.profile = "none"}, {}), HasSubstr("no keys for s3:// were found"));
  EXPECT_THAT(said({.profile = "far"}, {}), HasSubstr("role_arn"));
  EXPECT_THAT(said({}, {{"AWS_ENDPOINT_URL_S3", "http://h"}}), HasSubstr("allow_http"));
  EXPECT_THAT(said({.access_key_id = "G"}, {}), HasSubstr("without its secret"));
  for (const char* const endpoint : {"user:hush@host", "https://user:hush@host", "ftp://user:hush@host"}) {
    EXPECT_THAT(said({.endpoint = endpoint}, {}), Not(HasSubstr("hush")));
  }

  const auto place = [&](const char* text, const remote_options& options) {
    const io::address at = io::address_of(io::parse_s3_name(text), find(options));
    EXPECT_EQ(at.shown, text);
    return at.host_header() + at.target;
  };
  EXPECT_EQ(place("s3://bucket/a b/c+?.tar", {}), "bucket.s3.eu-west-1.amazonaws.com/a%20b/c%2B%3F.tar");
  EXPECT_EQ(place("s3://my.bucket/a", {.region = "us-east-2"}), "s3.us-east-2.amazonaws.com/my.bucket/a");
  EXPECT_EQ(place("s3://bucket/a", {.endpoint = "https://store:9000/s3/"}), "store:9000/s3/bucket/a");
  for (const char* const bad : {"s3://bucket", "s3://bucket/", "s3://B/x", "s3:///x", "s3://"}) {
    EXPECT_THROW(static_cast<void>(io::parse_s3_name(bad)), error) << bad;
  }
}

TEST(remote_objects, that_differ_in_their_query_alone_have_a_number_in_their_names) {
  const std::vector<std::string> addresses = {"https://h/a?v=1", "https://h/b", "https://h/a?v=2", "https://h/a?v=3",
                                              "https://h/c"};
  const auto described = io::describe_objects(addresses, {});
  std::vector<std::string> names;
  for (std::uint32_t file = 0; file < described->files(); ++file) names.push_back(described->file_name(file));
  EXPECT_THAT(
      names, ::testing::ElementsAre("https://h/a", "https://h/b", "https://h/a (2)", "https://h/a (3)", "https://h/c"));
}

TEST(s3, a_listing_is_read_page_by_page_and_what_is_none_is_refused) {
  fault_server server;
  const remote_options options{
      .allow_http = true, .endpoint = server.address(""), .access_key_id = "KEYID", .secret_access_key = "hush"};
  server.set_rule([](const served_request& asked) {
    const bool is_first = asked.target.find("continuation-token") == std::string::npos;
    const std::string page =
        is_first ? "<?xml version=\"1.0\"?><ListBucketResult "
                   "xmlns=\"x\"><EncodingType>url</EncodingType><IsTruncated>true</"
                   "IsTruncated><NextContinuationToken>a+b&amp;"
                   "</NextContinuationToken><Contents><Key>t/b-2.tar</Key><Size>7</Size><ETag>a\r\nb</ETag></"
                   "Contents><Contents><Key>t/bsub/b-3.tar</Key>"
                   "<Size>1</Size></Contents></ListBucketResult>"
                 : "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
                   "<Contents><Key>t/b-%31.tar</"
                   "Key><Size>5</Size><ETag>&quot;a-1&quot;</ETag></Contents>"
                   "<Contents><Key>t/b+c.txt</Key><Size>5</Size></Contents></ListBucketResult>";
    if (!is_first)
      EXPECT_THAT(asked.target, HasSubstr("?continuation-token=a%2Bb%26&encoding-type=url&list-type=2&prefix=t%2Fb"));
    // In two chunks, as AWS does.
    const std::string chunks =
        "a\r\n" + page.substr(0, 10) + "\r\n" + hex(page.size() - 10) + "\r\n" + page.substr(10) + "\r\n0\r\n\r\n";
    return http_fault{
        .what = wrong::status, .status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = chunks};
  });
  const std::vector<io::named_object> found = io::match_objects("s3://bucket/t/b*.tar", options);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].address, "s3://bucket/t/b-1.tar");
  EXPECT_EQ(found[0].size_bytes, 5U);
  EXPECT_EQ(found[0].etag, "\"a-1\"") << "with its quotes";
  EXPECT_EQ(found[1].address, "s3://bucket/t/b-2.tar");
  EXPECT_EQ(found[1].etag, "") << "one that no header can hold";
  EXPECT_THAT(server.all_headers(), HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date"));
  const auto said = [&](const std::string& body) {
    server.set_rule(
        [body](const served_request&) { return http_fault{.what = wrong::status, .status = 200, .body = body}; });
    try {
      static_cast<void>(io::match_objects("s3://bucket/t/b*.tar", options));
    } catch (const error& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  EXPECT_THAT(said("<html>"), HasSubstr("is no listing"));
  EXPECT_THAT(said("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"),
              HasSubstr("no object matches"));
  EXPECT_THAT(said("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken></"
                   "ListBucketResult>"),
              HasSubstr("does not go on"));
  // What stands for a folder is no object to read.
  EXPECT_THAT(said("<ListBucketResult><Contents><Key>t/b/</Key><Size>0</Size></Contents></ListBucketResult>"),
              HasSubstr("no object matches"));
  EXPECT_THROW(static_cast<void>(io::match_objects("s3://bucket/t/*", options)), error);
  for (const char* const bad : {"", "<ListBucketResult>", "</ListBucketResult><ListBucketResult",
                                "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
                                "<ListBucketResult><Contents><Key>%4</Key><Size>1</Size></Contents><EncodingType>url</"
                                "EncodingType></ListBucketResult>",
                                "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
                                "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    EXPECT_FALSE(io::parse_s3_page(bad)) << bad;
  }
  const auto plain = io::parse_s3_page(
      "<ListBucketResult><Contents><Key>a+%41&amp;</Key><Size>1</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->objects.front().key, "a+%41&") << "names that are not encoded";
  // Stores that are written in Go give quotes as numbers.
  for (const auto& [written, meant] :
       {std::pair("&#34;a-1&#34;", "\"a-1\""), std::pair("&#x22;a-1&#x22;", "\"a-1\""), std::pair("&#38;", "\"&\""),
        std::pair("&#0;&#300;&#x;&#34", "\"&#0;&#300;&#x;&#34\""), std::pair("&", "\"&\"")}) {
    const auto numbered = io::parse_s3_page(str_cat("<ListBucketResult><Contents><Key>a</Key><Size>1</Size><ETag>",
                                                    written, "</ETag></Contents></ListBucketResult>"));
    ASSERT_TRUE(numbered) << written;
    EXPECT_EQ(numbered->objects.front().etag, meant) << written;
  }
}

TEST_F(remote_faults, requests_to_a_store_are_signed_and_its_clock_and_its_words_are_taken) {
  server_.put("bucket/a.bin", content_);
  const std::string address = server_.address("");
  const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(address)};
  description_.emplace(
      std::vector<io::remote_object>{{.where = io::address_of({"bucket", "a.bin"}, store), .is_in_store = true}},
      remote_options{.allow_http = true}, soon, store);
  running_.call([this] { source_ = description_->connect(running_.loop()); });
  // A clock that is 40 years behind: all that were on their way are asked again with its time.
  server_.set_rule([](const served_request& asked) {
    const bool is_on_time = asked.value("x-amz-date").starts_with("19941106T08");
    return is_on_time
               ? http_fault()
               : http_fault{.what = wrong::status, .status = 403, .headers = "Date: Sun, 06 Nov 1994 08:40:00 GMT\r\n"};
  });
  read_together(8);
  const std::uint64_t before = server_.requests();
  expect_right(*read(7, 1'000));
  EXPECT_EQ(server_.requests() - before, 1U) << "the store's clock is kept";
  EXPECT_THAT(server_.all_headers(),
              HasSubstr("authorization: AWS4-HMAC-SHA256 Credential=KEYID/19941106/eu-west-1/s3/aws4_request"));
  server_.set_rule([](const served_request&) {
    return http_fault{.what = wrong::status, .status = 403, .body = "<?xml?><Error><Code>AccessDenied</Code></Error>"};
  });
  EXPECT_THAT(failure_of(0, 10), HasSubstr("s3://bucket/a.bin at offset 0, 10 bytes: 403 As Told, AccessDenied"));
  server_.set_rule([](const served_request&) {
    return http_fault{.what = wrong::status, .status = 301, .headers = "x-amz-bucket-region: eu-north-1\r\n"};
  });
  EXPECT_THAT(failure_of(0, 10), HasSubstr("in the region eu-north-1"));
  // Who it leads to gets no signature.
  server_.set_rule([](const served_request& asked) {
    return asked.target == "/bucket/a.bin"
               ? http_fault{.what = wrong::status, .status = 307, .headers = "Location: /bucket/a.bin?2\r\n"}
               : http_fault{.what = wrong::status, .status = asked.value("authorization").empty() ? 404U : 500U};
  });
  EXPECT_THAT(failure_of(0, 10), HasSubstr("404"));
  EXPECT_THAT(server_.all_headers(), Not(HasSubstr("hush")));
}

TEST(address, is_split_encoded_and_shown_without_its_secrets) {
  const io::address found = io::parse_address("https://Host.Example:8443/a b/x.tar?X-Amz-Signature=hush#part");
  EXPECT_EQ(found.host, "host.example");
  EXPECT_EQ(found.port, 8443);
  EXPECT_EQ(found.target, "/a%20b/x.tar?X-Amz-Signature=hush");
  EXPECT_EQ(found.shown, "https://Host.Example:8443/a b/x.tar");
  EXPECT_EQ(found.host_header(), "host.example:8443");
  EXPECT_EQ(io::parse_address("https://[::1]/x").host_header(), "[::1]");
  EXPECT_EQ(io::parse_address("http://h").target, "/");
  for (const char* const bad : {"https://", "https:///x", "https://h:0/", "https://h:99999/", "https://h:1x/",
                                "https://a:b:c/", "https://h /x", "https://h/x\r\nHost: i", "https://[::1/x"}) {
    EXPECT_THROW(static_cast<void>(io::parse_address(bad)), error) << bad;
  }
  for (const char* const secret : {"user:hush", "hush", "user:hu/sh", "user:hu?sh", "user:hu#sh", "user:a@hu/sh"}) {
    for (const char* const rest : {"@host/x?q", "@host/{0..3}.tar"}) {
      const std::string address = std::string("https://") + secret + rest;
      try {
        static_cast<void>(io::parse_address(address));
        ADD_FAILURE() << address;
      } catch (const error& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("an address with a user"));
        EXPECT_THAT(refused.what(), Not(HasSubstr("hu")));
      }
    }
  }
  EXPECT_EQ(io::redacted("https://user:hush@host/x?hush"), "https://host/x");
  EXPECT_EQ(io::redacted("https://host:80/a@b?hush"), "https://host:80/a@b");
}

TEST(http_text, of_lines_that_do_not_end_no_more_is_kept_than_of_a_header) {
  for (const char* const begins : {"1;", "0\r\nTrailer: "}) {
    io::http_text text(1'000);
    EXPECT_EQ(text.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), io::http_text::state::more);
    io::http_text::state now = text.feed(begins);
    std::size_t fed = 0;
    for (; now == io::http_text::state::more && fed < 10 * io::http_head_bytes_max; fed += 1'000) {
      now = text.feed(std::string(1'000, 'a'));
    }
    EXPECT_EQ(now, io::http_text::state::refused);
    EXPECT_LE(fed, io::http_head_bytes_max + 1'000);
  }
}

TEST(http_head, says_what_a_range_is_or_nothing) {
  const auto range = io::parse_content_range("bytes 5-9/100");
  ASSERT_TRUE(range && range->is_satisfied);
  EXPECT_EQ(range->first, 5U);
  EXPECT_EQ(range->last, 9U);
  EXPECT_EQ(range->total, 100U);
  EXPECT_FALSE(io::parse_content_range("bytes */7")->is_satisfied);
  EXPECT_EQ(io::parse_content_range("bytes 0-1/*")->total, std::nullopt);
  for (const char* const bad : {"", "bytes", "bytes 5-4/10", "bytes 0-10/10", "items 0-1/2", "bytes 0-1", "bytes -1/2",
                                "bytes 0-99999999999999999999/*", "bytes 0-1/2 "}) {
    EXPECT_FALSE(io::parse_content_range(bad)) << bad;
  }
}

}  // namespace
}  // namespace leat::testing
