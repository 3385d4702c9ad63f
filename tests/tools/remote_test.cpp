// The command over HTTP and TLS.
#include "tests/datasets/archive.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leat::testing {
namespace {

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

}  // namespace
}  // namespace leat::testing
