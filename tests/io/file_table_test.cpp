#include "io/files/file_table.hpp"

#include "io/files/file_description.hpp"

#include <leat/error.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

namespace leat::io {
namespace {

TEST(file_table, refuses_a_name_that_the_system_would_end_before_its_end) {
  file_table files;
  for (const std::string_view wrong :
       {std::string_view("/data/a\0b/1.jpg", 15), std::string_view("/data/1.jpg\0.png", 16)}) {
    EXPECT_THROW(files.add(wrong, 10), error) << wrong;
  }
  EXPECT_EQ(files.files(), 0U);
}

TEST(file_table, gives_back_paths_and_sizes_as_they_were_added) {
  file_table files;
  EXPECT_EQ(files.add("/data/a/1.jpg", 10), 0U);
  EXPECT_EQ(files.add("/data/a/2.jpg", 20), 1U);
  EXPECT_EQ(files.add("/data/b/1.jpg"), 2U);
  EXPECT_EQ(files.add("/data/a", "3.jpg", 30), 3U);
  EXPECT_EQ(files.add("plain", 0), 4U);
  EXPECT_EQ(files.add("/root", 7), 5U);
  EXPECT_EQ(files.add("", "here", 8), 6U);
  files.finish();
  EXPECT_EQ(files.files(), 7U);
  EXPECT_EQ(files.path(0), "/data/a/1.jpg");
  EXPECT_EQ(files.path(1), "/data/a/2.jpg");
  EXPECT_EQ(files.path(2), "/data/b/1.jpg");
  EXPECT_EQ(files.path(3), "/data/a/3.jpg");
  EXPECT_EQ(files.path(4), "plain");
  EXPECT_EQ(files.path(5), "/root");
  EXPECT_EQ(files.path(6), "here");
  EXPECT_EQ(files.name(3), "3.jpg");
  EXPECT_EQ(files.size_bytes(1), 20U);
  EXPECT_EQ(files.size_bytes(2), file_table::unknown_size);
  EXPECT_EQ(files.size_bytes(4), 0U);
  EXPECT_EQ(files.directory(0), files.directory(3));
  EXPECT_NE(files.directory(0), files.directory(2));
}

TEST(file_table, keeps_sizes_of_more_than_32_bits) {
  file_table files;
  const std::uint64_t sizes[] = {0xFFFFFFFDU, 0xFFFFFFFEU, 0xFFFFFFFFU, 0x100000000U, 5, std::uint64_t{1} << 50};
  for (const std::uint64_t size : sizes) files.add("f", size);
  for (std::uint32_t i = 0; i < files.files(); ++i) EXPECT_EQ(files.size_bytes(i), sizes[i]);
}

TEST(file_table, appends_another_and_takes_more_after_finish) {
  file_table one;
  one.add("/a/x", 1);
  one.finish();
  file_table two;
  two.add("/b/y", 2);
  two.add("/a/z", std::uint64_t{1} << 40);
  EXPECT_EQ(one.append(two), 1U);
  EXPECT_EQ(one.path(1), "/b/y");
  EXPECT_EQ(one.path(2), "/a/z");
  EXPECT_EQ(one.size_bytes(2), std::uint64_t{1} << 40);
  EXPECT_EQ(one.directories(), 2U);
}

TEST(file_table, costs_a_name_and_eight_bytes_a_file) {
  file_table files;
  std::size_t names = 0;
  constexpr std::uint32_t count = 100'000;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i) + ".JPEG";
    names += name.size();
    files.add("/data/imagenet/train/n" + std::to_string(i / 1300), name, 100'000 + i);
  }
  files.finish();
  EXPECT_LE(files.memory_bytes(), names + 8 * count + 16 * 1024);
  EXPECT_EQ(files.path(77'777), "/data/imagenet/train/n59/n77777.JPEG");
}

TEST(file_description, names_its_files) {
  auto table = std::make_shared<file_table>();
  table->add("/x/y", 3);
  const file_description described(table);
  EXPECT_EQ(described.files(), 1U);
  EXPECT_EQ(described.file_name(0), "/x/y");
}

}  // namespace
}  // namespace leat::io
