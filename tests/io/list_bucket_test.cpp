// What list_bucket() returns is the bucket's content, whatever its folders look like and however a store answers, for requests that are counted.
#include "io/remote/list_bucket.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/s3.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wrong = http_fault::kind;

struct list_bucket : ::testing::Test {
  void put(const std::string& key) {
    server_.put(str_cat("bucket/", key), std::string(keys_.size() % 5, 'x'));
    keys_.insert(key);
  }
  // "t/c012/000003.jpg"
  void put_folders(std::size_t folders, std::size_t objects_each, std::string_view below = "t/") {
    for (std::size_t i = 0; i < folders; ++i) {
      for (std::size_t j = 0; j < objects_each; ++j) put(str_cat(below, "c", 1000 + i, "/", 100000 + j, ".jpg"));
    }
  }
  std::vector<std::string> listed(const std::string& prefix) {
    const std::uint64_t before = server_.requests();
    const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(server_.address(""))};
    std::vector<std::string> keys;
    for (const io::s3_listed& each : io::list_bucket("bucket", prefix, store, {.allow_http = true})) {
      EXPECT_NE(each.etag, "");
      keys.push_back(each.key);
    }
    requests_ = server_.requests() - before;
    return keys;
  }
  [[nodiscard]] std::vector<std::string> put_below(const std::string& prefix) const {
    std::vector<std::string> keys;
    for (const std::string& each : keys_) {
      if (each.starts_with(prefix)) keys.push_back(each);
    }
    return keys;
  }
  [[nodiscard]] std::uint64_t pages(const std::string& prefix) const {
    return std::max<std::uint64_t>(1, (put_below(prefix).size() + names_a_page_ - 1) / names_a_page_);
  }
  void list_by(std::size_t names_a_page) {
    names_a_page_ = names_a_page;
    server_.set_listing({.names_a_page = names_a_page});
  }
  static bool asks_folders(const served_request& asked) { return asked.target.find("delimiter=") != std::string::npos; }
  // Of a part: it begins with more than the whole does.
  static bool asks_part(const served_request& asked) { return asked.target.find("prefix=t%2Fc") != std::string::npos; }

  fault_server server_;
  std::set<std::string> keys_;
  std::size_t names_a_page_ = 7;
  std::uint64_t requests_ = 0;
};

TEST_F(list_bucket, folders_are_listed_side_by_side_for_few_requests_more_than_pages) {
  list_by(10);
  put_folders(60, 30);
  put("t/about.txt");
  put("t/c1005");
  put("t/c1005.txt");
  put("t/");
  put("u/other");
  std::atomic<std::uint64_t> of_parts = 0;
  server_.set_rule([&](const served_request& asked) {
    if (asks_part(asked)) ++of_parts;
    return http_fault();
  });
  EXPECT_EQ(listed("t/"), put_below("t/"));
  EXPECT_GE(of_parts, 180U) << "all pages but the first";
  EXPECT_LE(requests_, pages("t/") + 60 + 10) << "one more for each group, and those for the folders' names";
  EXPECT_EQ(listed("t/c"), put_below("t/c")) << "as a glob asks";
  EXPECT_EQ(listed("t/c1005"), put_below("t/c1005"));
}

TEST_F(list_bucket, what_is_quickly_listed_in_a_row_costs_no_request_more) {
  list_by(10);
  put_folders(3, 3);
  EXPECT_EQ(listed("t/"), put_below("t/"));
  EXPECT_EQ(requests_, 1U) << "one page";
  for (int i = 0; i < 95; ++i) put(str_cat("flat/", 1000 + i, ".jpg"));
  EXPECT_EQ(listed("flat/"), put_below("flat/"));
  EXPECT_EQ(requests_, pages("flat/")) << "no folders";
  put_folders(300, 1, "tiny/");
  EXPECT_EQ(listed("tiny/"), put_below("tiny/"));
  EXPECT_EQ(requests_, pages("tiny/")) << "folders of one object";
  EXPECT_EQ(listed("none/"), std::vector<std::string>());
  EXPECT_EQ(requests_, 1U);
}

TEST_F(list_bucket, folders_whose_names_go_on_in_tiny_ones_cost_few_requests) {
  list_by(10);
  put_folders(1, 40, "t/a");
  put_folders(700, 1, "t/b");
  EXPECT_EQ(listed("t/"), put_below("t/"));
  // 701 folders are 71 pages of names: they are given up behind 32.
  EXPECT_LE(requests_, pages("t/") + 32);
  for (int i = 0; i < 250; ++i) put(str_cat("u/", i < 40 ? "a" : str_cat("b", i), "/", 1000 + i));
  EXPECT_EQ(listed("u/"), put_below("u/"));
  EXPECT_LE(requests_, 2 * pages("u/") + 22 + 128);
}

TEST_F(list_bucket, folders_in_folders_are_found) {
  list_by(10);
  put_folders(20, 30, "set/train/");
  put_folders(8, 20, "set/val/");
  put("set/readme.md");
  put("set/train/c1003/deep/er/a.jpg");
  for (int i = 0; i < 100; ++i) put(str_cat("set/train/c1004/", i % 3, "/", i, ".jpg"));
  EXPECT_EQ(listed("set/"), put_below("set/"));
  EXPECT_EQ(listed(""), put_below(""));
  EXPECT_LE(requests_, 3 * pages(""));
}

TEST_F(list_bucket, any_tree_of_any_names_is_returned_once_and_in_order) {
  for_each_seed(20, [&](std::uint64_t seed) {
    seeded_random random(seed);
    const std::string_view letters[] = {
        "a", "b", "/", "/", "-", ".", "+", " ", "%", "&", "<", "\xC3\xA9", "\xE4\xB8\xAD", "\x80", "0", "~"};
    fault_server server;
    std::set<std::string> keys;
    const std::size_t names = random.below(800);
    const std::size_t letters_used = 2 + random.below(std::size(letters) - 1);
    const std::size_t names_a_page = 2 + random.below(30);
    server.set_listing({.names_a_page = names_a_page});
    for (std::size_t i = 0; i < names; ++i) {
      std::string key = "t";
      for (std::size_t length = random.below(9); length > 0; --length) key += letters[random.below(letters_used)];
      server.put(str_cat("bucket/", key), "x");
      keys.insert(key);
    }
    const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(server.address(""))};
    for (const std::string prefix : {"", "t", "ta", "t/"}) {
      std::vector<std::string> expected;
      for (const std::string& each : keys) {
        if (each.starts_with(prefix)) expected.push_back(each);
      }
      const std::uint64_t before = server.requests();
      std::vector<std::string> found;
      for (const io::s3_listed& each : io::list_bucket("bucket", prefix, store, {.allow_http = true}))
        found.push_back(each.key);
      EXPECT_EQ(found, expected) << "with the prefix \"" << prefix << '"';
      const std::size_t pages = expected.size() / names_a_page + 1;
      EXPECT_LE(server.requests() - before, 5 * pages + 128);
    }
  });
}

TEST_F(list_bucket, a_store_that_knows_no_delimiter_is_listed_page_by_page) {
  put_folders(20, 30);
  server_.set_listing({.knows_delimiter = false});
  EXPECT_EQ(listed("t/"), put_below("t/"));
  EXPECT_EQ(requests_, pages("t/") + 1);
}

TEST_F(list_bucket, what_is_no_answer_of_folders_or_may_not_be_asked_is_listed_page_by_page) {
  put_folders(20, 30);
  const auto told = [](unsigned status, const std::string& body) {
    return http_fault{.what = wrong::status, .status = status, .body = body};
  };
  const auto folders = [&](std::string_view between) {
    return told(200, str_cat("<ListBucketResult>", between, "</ListBucketResult>"));
  };
  const auto page = [](std::string_view prefix) {
    return str_cat("<CommonPrefixes><Prefix>", prefix, "</Prefix></CommonPrefixes>");
  };
  for (const http_fault& answer :
       {told(403, "<Error><Code>AccessDenied</Code></Error>"), told(404, ""), told(400, ""), told(200, "<html>"),
        folders(""), folders("<CommonPrefixes></CommonPrefixes>"), folders(page("u/c1000/")), folders(page("t/c1000")),
        folders(page("t/c1000/d/")), folders(page("t/")), folders(page("t/c1001/")),
        folders("<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"),
        folders(str_cat(page("t/c1000/"),
                        "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"))}) {
    server_.set_rule([answer](const served_request& asked) { return asks_folders(asked) ? answer : http_fault(); });
    EXPECT_EQ(listed("t/"), put_below("t/")) << answer.body;
    EXPECT_LE(requests_, pages("t/") + 2);
  }
  // The folders' names are right, and then each of them is refused, or what comes is nonsense.
  for (const http_fault& answer :
       {told(403, "<Error><Code>AccessDenied</Code></Error>"), told(404, ""), told(200, "<html>"),
        folders("<Contents><Key>u/c1000/a</Key><Size>1</Size></Contents>"),
        folders("<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>")}) {
    server_.set_rule([answer](const served_request& asked) { return asks_part(asked) ? answer : http_fault(); });
    EXPECT_EQ(listed("t/"), put_below("t/")) << answer.body;
    EXPECT_LE(requests_, pages("t/") + 40);
  }
}

TEST_F(list_bucket, a_folder_whose_name_is_told_wrongly_is_not_lost) {
  put_folders(10, 30);
  for (int i = 0; i < 30; ++i) put(str_cat("t/z a/", i));
  // "+" is a blank where names are encoded.
  server_.set_rule([](const served_request& asked) {
    std::string body = "<ListBucketResult>";
    for (int i = 0; i < 10; ++i)
      str_append(body, "<CommonPrefixes><Prefix>t/c", 1000 + i, "/</Prefix></CommonPrefixes>");
    body += "<CommonPrefixes><Prefix>t/z+a/</Prefix></CommonPrefixes></ListBucketResult>";
    return asks_folders(asked) ? http_fault{.what = wrong::status, .status = 200, .body = body} : http_fault();
  });
  EXPECT_EQ(listed("t/"), put_below("t/"));
}

TEST_F(list_bucket, folders_whose_names_are_no_utf_8_are_listed_page_by_page) {
  for (const char* const folder : {"A", "A\x80", "A\xC3"}) {
    for (int i = 0; i < 30; ++i) put(str_cat("t/", folder, "/", i));
  }
  EXPECT_EQ(listed("t/"), put_below("t/"));
}

TEST_F(list_bucket, a_part_that_fails_is_the_listing_s_error) {
  put_folders(20, 30);
  for (const bool is_late : {false, true}) {
    // Requests may still be answered when the listing has failed.
    const auto parts = std::make_shared<std::atomic<std::uint64_t>>(0);
    server_.set_rule([parts, is_late](const served_request& asked) {
      return asks_part(asked) && (!is_late || ++*parts > 40) ? http_fault{.what = wrong::no_http} : http_fault();
    });
    try {
      static_cast<void>(listed("t/"));
      ADD_FAILURE() << "no error";
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::io);
      EXPECT_THAT(failed.what(), HasSubstr("s3://bucket/t/: its names cannot be listed: "));
    }
  }
  // As it is where all is refused.
  server_.set_rule([](const served_request&) {
    return http_fault{.what = wrong::status, .status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"};
  });
  EXPECT_THROW(static_cast<void>(listed("t/")), error);
}

TEST_F(list_bucket, what_was_not_asked_for_is_refused) {
  const auto refused = [&](const std::function<std::string(std::uint64_t page)>& page_of) {
    const auto asked = std::make_shared<std::atomic<std::uint64_t>>(0);
    server_.set_rule([asked, page_of](const served_request&) {
      return http_fault{.what = wrong::status,
                        .status = 200,
                        .body = str_cat("<ListBucketResult>", page_of((*asked)++), "</ListBucketResult>")};
    });
    return message_of(errc::io, [&] { static_cast<void>(listed("d/")); });
  };
  const auto object = [](const std::string& key) {
    return str_cat("<Contents><Key>", key, "</Key><Size>10</Size><ETag>\"a\"</ETag></Contents>");
  };
  const auto next = [](const std::string& token) {
    return str_cat("<IsTruncated>true</IsTruncated><NextContinuationToken>", token, "</NextContinuationToken>");
  };
  for (const char* const foreign : {"x", "e/x.jpg", "D/x.jpg", "d"}) {
    EXPECT_THAT(refused([&](std::uint64_t) { return str_cat(object("d/a.jpg"), object(foreign)); }),
                AllOf(HasSubstr("s3://bucket/d/: the store's listing has '"), HasSubstr(foreign),
                      HasSubstr("does not begin with the 'd/' that was asked for")));
  }
  EXPECT_THAT(refused([&](std::uint64_t) { return str_cat(object("d/a"), object("d/b"), object("d/a")); }),
              HasSubstr("has 'd/a' twice"));
  EXPECT_THAT(
      refused([&](std::uint64_t page) { return page == 0 ? str_cat(object("d/b"), next("1")) : object("d/b"); }),
      HasSubstr("has 'd/b' twice"));
  EXPECT_THAT(
      refused([&](std::uint64_t page) { return str_cat(object(str_cat("d/", page)), next(std::to_string(page % 3))); }),
      HasSubstr("does not go on"));
  EXPECT_LE(requests_, 8U);
  EXPECT_THAT(refused([&](std::uint64_t page) {
                return str_cat(object(str_cat("d/", 1000 + page)), next(std::to_string(page)));
              }),
              HasSubstr("does not come to an end: 256 pages had 256 names"));
  for (const char* const no_key : {"", "&#0;", "d/%00"}) {
    EXPECT_THAT(refused([&](std::uint64_t) {
                  return str_cat("<EncodingType>url</EncodingType>", object(no_key), object("d/a"));
                }),
                HasSubstr("listing"))
        << no_key;
  }
}

TEST_F(list_bucket, no_more_answers_are_asked_for_than_are_wanted) {
  put_folders(20, 30);
  const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(server_.address(""))};
  for (const std::uint64_t pages_max : {1U, 2U, 5U}) {
    const std::vector<io::s3_listed> some = io::list_bucket("bucket", "t/", store, {.allow_http = true}, pages_max);
    EXPECT_LE(some.size(), pages_max * names_a_page_);
    EXPECT_GE(some.size(), 1U);
  }
}

TEST(group_folders, each_group_s_prefix_is_of_its_folders_alone) {
  for_each_seed(50, [&](std::uint64_t seed) {
    seeded_random random(seed);
    std::set<std::string> names;
    const std::string_view letters[] = {"0", "1", "a", "\xC3\xA9", "\xC3\xA8", "\xE4\xB8\xAD"};
    for (std::size_t i = random.below(300); i > 0; --i) {
      std::string name = "t/";
      for (std::size_t length = 1 + random.below(6); length > 0; --length)
        name += letters[random.below(std::size(letters))];
      names.insert(name + "/");
    }
    const std::vector<std::string> folders(names.begin(), names.end());
    const std::size_t groups_max = 1 + random.below(150);
    const std::vector<io::folder_group> groups = io::group_folders(folders, groups_max);
    EXPECT_LE(groups.size(), groups_max);
    std::size_t next = 0;
    for (const io::folder_group& group : groups) {
      EXPECT_EQ(group.begin, next);
      EXPECT_LT(group.begin, group.end);
      next = group.end;
      for (std::size_t i = 0; i < folders.size(); ++i)
        EXPECT_EQ(folders[i].starts_with(group.prefix), group.begin <= i && i < group.end);
      const bool is_cut = group.prefix.size() < folders[group.begin].size() &&
                          (static_cast<unsigned char>(folders[group.begin][group.prefix.size()]) & 0xC0U) == 0x80U;
      EXPECT_FALSE(is_cut) << "within a character";
    }
    EXPECT_EQ(next, folders.size());
  });
}

TEST(group_folders, the_one_with_the_most_folders_is_divided_first) {
  const auto prefixes = [](const std::vector<std::string>& folders, std::size_t groups_max) {
    std::vector<std::string> out;
    for (const io::folder_group& each : io::group_folders(folders, groups_max)) out.push_back(each.prefix);
    return out;
  };
  const std::vector<std::string> folders = {"t/a/", "t/n01/", "t/n02/", "t/n11/"};
  EXPECT_THAT(prefixes(folders, 1), ElementsAre("t/"));
  EXPECT_THAT(prefixes(folders, 2), ElementsAre("t/a/", "t/n"));
  EXPECT_THAT(prefixes(folders, 3), ElementsAre("t/a/", "t/n0", "t/n11/"));
  EXPECT_THAT(prefixes(folders, 9), ElementsAre("t/a/", "t/n01/", "t/n02/", "t/n11/"));
  EXPECT_THAT(prefixes({"t/a/"}, 9), ElementsAre("t/a/"));
  EXPECT_THAT(prefixes({}, 9), ElementsAre());
}

}  // namespace
}  // namespace leat::testing
