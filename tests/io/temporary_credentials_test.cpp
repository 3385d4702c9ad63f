// Temporary credentials: by whom, when they are renewed, and that no word of them is shown.
#include "base/sanitizers.hpp"
#include "io/remote/address.hpp"
#include "io/remote/credential_providers.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/renewed_credentials.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/sigv4.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <exception>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string time_text(std::int64_t from_now_s) {
  const std::time_t then = std::time(nullptr) + from_now_s;
  std::tm parts{};
  ::gmtime_r(&then, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}
std::string keys_text(const std::string& id, std::int64_t expires_in_s = 3600) {
  return R"({"Version": 1, "AccessKeyId": ")" + id + R"(", "SecretAccessKey": "hush", "SessionToken": "hush-too", )" +
         R"("Token": "hush-too", "Expiration": ")" + time_text(expires_in_s) + "\"}";
}
http_fault answer(const std::string& body) { return {.what = http_fault::kind::status, .status = 200, .body = body}; }

class temporary_credentials : public ::testing::Test {
 protected:
  temporary_credentials() { std::ofstream(path("token")) << "web-token/1\n"; }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] io::s3_access find(std::map<std::string, std::string> more, remote_options options = {}) const {
    more["AWS_SHARED_CREDENTIALS_FILE"] = path("none");
    more["AWS_CONFIG_FILE"] = path("config");
    more.try_emplace("AWS_EC2_METADATA_DISABLED", "true");
    options.allow_http = true;
    options.endpoint = server_.address("");
    return io::find_s3_access(options, [more = std::move(more)](const char* name) {
      const auto found = more.find(name);
      return found == more.end() ? std::string() : found->second;
    });
  }
  [[nodiscard]] std::string said(const std::map<std::string, std::string>& more) const {
    try {
      static_cast<void>(find(more));
    } catch (const error& refused) {
      EXPECT_THAT(refused.what(), Not(HasSubstr("hush")));
      return refused.what();
    }
    return "";
  }
  [[nodiscard]] std::map<std::string, std::string> container() const {
    return {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server_.address("agent")},
            {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "agent-token"}};
  }
  [[nodiscard]] io::s3_access provided_by(io::credential_provider provider,
                                          const io::renewal_pauses& pauses = {}) const {
    io::s3_access store;
    store.region = "us-east-1";
    store.endpoint = io::parse_address(server_.address(""));
    store.renewed = std::make_shared<io::renewed_credentials>(std::move(provider), pauses);
    return store;
  }
  /// All of an object of the store.
  struct whole_object {
    std::string bytes;
    io::fetch_end end = io::fetch_end::pending;
    std::string why;
  };
  static whole_object read(const io::s3_access& store, std::size_t bytes,
                           const io::retry_options& retries = {.tries_max = 1}) {
    return read_at_once(1, store, bytes, retries).front();
  }
  static std::vector<whole_object> read_at_once(std::size_t reads, const io::s3_access& store, std::size_t bytes,
                                                const io::retry_options& retries) {
    io::http_client client({.allow_http = true}, retries, &store);
    const io::address where = io::address_of(io::parse_s3_name("s3://bucket/a.bin"), store);
    std::vector<whole_object> got(reads);
    std::vector<std::promise<void>> ended(reads);
    std::vector<std::shared_ptr<io::fetch>> all;
    for (std::size_t i = 0; i < reads; ++i) {
      got[i].bytes.resize(bytes);
      auto wanted = std::make_shared<io::fetch>();
      wanted->where = &where;
      wanted->is_signed = true;
      wanted->into = std::as_writable_bytes(std::span(got[i].bytes));
      wanted->owner = &ended[i];
      wanted->ended = [](io::fetch& done) noexcept { static_cast<std::promise<void>*>(done.owner)->set_value(); };
      all.push_back(std::move(wanted));
    }
    client.start(all);
    for (std::size_t i = 0; i < reads; ++i) {
      ended[i].get_future().wait();
      got[i].end = all[i]->end;
      got[i].why = all[i]->why;
    }
    return got;
  }

  const temporary_directory folder_;
  fault_server server_;
};

TEST_F(temporary_credentials, of_a_role_are_asked_for_with_a_web_identity) {
  server_.set_rule([](const served_request& asked) {
    EXPECT_THAT(asked.target, AllOf(HasSubstr("/sts/?Action=AssumeRoleWithWebIdentity&"),
                                    HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Ftrain"),
                                    HasSubstr("WebIdentityToken=web-token%2F1")));
    return answer(
        "<R><Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>hush</SecretAccessKey>"
        "<SessionToken>hush-too</SessionToken><Expiration>" +
        time_text(3600) + "</Expiration></Credentials></R>");
  });
  const std::map<std::string, std::string> role = {{"AWS_ROLE_ARN", "arn:aws:iam::1:role/train"},
                                                   {"AWS_WEB_IDENTITY_TOKEN_FILE", path("token")},
                                                   {"AWS_ENDPOINT_URL_STS", server_.address("sts/")}};
  {
    const io::s3_access found = find(role);
    EXPECT_EQ(found.keys.id, "ROLE");
    EXPECT_EQ(found.keys.token, "hush-too");
    const std::uint64_t asked = server_.requests();
    EXPECT_EQ(find(role).renewed, found.renewed) << "once for all who use them";
    EXPECT_EQ(server_.requests(), asked);
  }
  server_.set_rule([](const served_request&) { return answer("<html>hush</html>"); });
  EXPECT_THAT(said(role), HasSubstr("no keys in it"));
  server_.set_rule([](const served_request&) { return http_fault{.what = http_fault::kind::status, .status = 403}; });
  EXPECT_THAT(said(role), AllOf(HasSubstr("403"), Not(HasSubstr("web-token"))));
  EXPECT_EQ(io::sts_endpoint("eu-west-1"), "https://sts.eu-west-1.amazonaws.com");
  EXPECT_EQ(io::sts_endpoint("cn-north-1"), "https://sts.cn-north-1.amazonaws.com.cn");
  auto far = role;
  far["AWS_ENDPOINT_URL_STS"] = "http://example.org/";
  EXPECT_THAT(said(far), HasSubstr("https:// only"));
}

TEST_F(temporary_credentials, of_a_role_are_asked_for_with_those_of_another_profile) {
  std::ofstream(path("config"))
      << "[profile base]\naws_access_key_id = BASE\naws_secret_access_key = hush-base\n"
         "[profile train]\nrole_arn = arn:aws:iam::1:role/train\nsource_profile = base\nexternal_id = their/hush-id\n"
         "role_session_name = night\nduration_seconds = 1800\nregion = eu-west-1\n"
         "[profile read]\nrole_arn = arn:aws:iam::2:role/read\nsource_profile = train\n";
  // Whether the signature is that of these keys, over what was asked.
  const auto is_signed_by = [this](const served_request& asked, const io::access_keys& keys,
                                   const std::string& region) {
    std::tm at{};
    EXPECT_NE(::strptime(asked.value("x-amz-date").c_str(), "%Y%m%dT%H%M%SZ", &at), nullptr);
    const std::size_t query = asked.target.find('?');
    const std::string host = io::parse_address(server_.address("")).host_header();
    for (const io::header_line& line : io::sigv4_signer(keys, region, "sts")
                                           .sign(asked.target.substr(0, query), asked.target.substr(query + 1),
                                                 {{"host", host}}, static_cast<std::int64_t>(::timegm(&at)))) {
      EXPECT_EQ(asked.value(line.name), line.value) << line.name;
    }
    return true;
  };
  const auto renewed = [](const std::string& id) {
    return answer("<R><Credentials><AccessKeyId>" + id +
                  "</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>hush-too</SessionToken>"
                  "<Expiration>" +
                  time_text(3600) + "</Expiration></Credentials></R>");
  };
  server_.set_rule([&](const served_request& asked) {
    if (asked.target.find("role%2Fread") != std::string::npos) {
      EXPECT_EQ(asked.target,
                "/sts/?Action=AssumeRole&RoleArn=arn%3Aaws%3Aiam%3A%3A2%3Arole%2Fread&RoleSessionName=leat&"
                "Version=2011-06-15");
      EXPECT_TRUE(is_signed_by(asked, {"TRAIN", "hush", "hush-too"}, "us-east-1"));
      return renewed("READ");
    }
    EXPECT_EQ(asked.target,
              "/sts/?Action=AssumeRole&DurationSeconds=1800&ExternalId=their%2Fhush-id&"
              "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Ftrain&RoleSessionName=night&Version=2011-06-15");
    EXPECT_TRUE(is_signed_by(asked, {"BASE", "hush-base"}, "eu-west-1"));
    return renewed("TRAIN");
  });
  const auto of_profile = [this](const std::string& name) {
    return std::map<std::string, std::string>{{"AWS_PROFILE", name}, {"AWS_ENDPOINT_URL_STS", server_.address("sts")}};
  };
  {
    const io::s3_access train = find(of_profile("train"));
    EXPECT_EQ(train.keys.id, "TRAIN");
    EXPECT_EQ(train.keys.token, "hush-too");
    EXPECT_EQ(train.keys_from, "the role of the profile 'train'");
    EXPECT_EQ(find(of_profile("train")).renewed, train.renewed) << "once for all who use them";
    EXPECT_EQ(server_.requests(), 1);
    EXPECT_EQ(find(of_profile("read")).keys.id, "READ") << "a role by a role";
    EXPECT_EQ(server_.requests(), 2) << "the first role's keys are there";
  }
  server_.set_rule([](const served_request&) {
    return http_fault{
        .what = http_fault::kind::status,
        .status = 403,
        .body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>hush</Message></Error></ErrorResponse>"};
  });
  EXPECT_THAT(said(of_profile("train")),
              AllOf(HasSubstr("the role arn:aws:iam::1:role/train, asked for with the keys of the profile 'base'"),
                    HasSubstr("403 As Told, AccessDenied"), HasSubstr("trust policy")));
  server_.set_rule([](const served_request&) { return answer("<html>hush</html>"); });
  EXPECT_THAT(said(of_profile("train")), HasSubstr("no keys in it"));
  auto far = of_profile("train");
  far["AWS_ENDPOINT_URL_STS"] = "http://example.org/";
  EXPECT_THAT(said(far), HasSubstr("https:// only"));
  far["AWS_ENDPOINT_URL_STS"] = "sts.example.org";
  EXPECT_THAT(said(far), HasSubstr("AWS_ENDPOINT_URL_STS: sts.example.org"));
}

TEST_F(temporary_credentials, of_a_role_come_from_where_its_profile_says_or_not_at_all) {
  std::ofstream(path("config"))
      << "[profile ring]\nrole_arn = arn:r\nsource_profile = round\n"
         "[profile round]\nrole_arn = arn:r\nsource_profile = ring\n"
         "[profile lost]\nrole_arn = arn:r\nsource_profile = nobody\n"
         "[profile bare]\nregion = eu-west-1\n[profile poor]\nrole_arn = arn:r\nsource_profile = bare\n"
         "[profile code]\nrole_arn = arn:r\nsource_profile = own\nmfa_serial = arn:mfa\n"
         "[profile long]\nrole_arn = arn:r\nsource_profile = own\nduration_seconds = 1 h\n"
         "[profile alone]\nrole_arn = arn:r\n"
         "[profile odd]\nrole_arn = arn:r\ncredential_source = Moon\n"
         "[profile here]\nrole_arn = arn:r\ncredential_source = Environment\n"
         "[profile there]\nrole_arn = arn:r\ncredential_source = EcsContainer\n"
         "[profile keyless]\naws_access_key_id = HALF\n[profile half]\nrole_arn = arn:r\nsource_profile = keyless\n"
         "[profile torn]\naws_access_key_id = TO RN\naws_secret_access_key = hush\n"
         "[profile odd-keys]\nrole_arn = arn:r\nsource_profile = torn\n"
         "[profile nowhere]\nrole_arn = arn:r\nsource_profile = own\nregion = example.org/\n"
         // As AWS's tools have it: its own keys, which are the role's source.
         "[profile own]\nrole_arn = arn:r\nsource_profile = own\naws_access_key_id = OWN\n"
         "aws_secret_access_key = hush\n";
  const auto said_of = [this](const std::string& name) { return said({{"AWS_PROFILE", name}}); };
  EXPECT_THAT(said_of("ring"), HasSubstr("in a circle"));
  EXPECT_THAT(said_of("lost"), AllOf(HasSubstr("source_profile 'nobody'"), HasSubstr(path("config"))));
  EXPECT_THAT(said_of("poor"), HasSubstr("'bare' has no keys"));
  EXPECT_THAT(said_of("code"), AllOf(HasSubstr("mfa_serial"), HasSubstr("credential_process")));
  EXPECT_THAT(said_of("long"), HasSubstr("duration_seconds is to be a number from 900"));
  EXPECT_THAT(said_of("alone"), AllOf(HasSubstr("role_arn"), HasSubstr("give it source_profile")));
  EXPECT_THAT(said_of("odd"), HasSubstr("Ec2InstanceMetadata"));
  EXPECT_THAT(said_of("here"), HasSubstr("AWS_ACCESS_KEY_ID is not set"));
  EXPECT_THAT(said_of("there"), HasSubstr("no agent"));
  EXPECT_THAT(said_of("half"), AllOf(HasSubstr("the profile 'keyless'"), HasSubstr("without its secret")));
  EXPECT_THAT(said_of("odd-keys"),
              AllOf(HasSubstr("the profile 'torn'"), HasSubstr("has blanks"), Not(HasSubstr("TO RN"))));
  EXPECT_THAT(said({{"AWS_PROFILE", "nowhere"}, {"AWS_REGION", "eu-west-1"}}), HasSubstr("is no name of one"));
  EXPECT_THAT(said({{"AWS_PROFILE", "here"}, {"AWS_ACCESS_KEY_ID", "E"}}), HasSubstr("without its secret"));
  EXPECT_EQ(server_.requests(), 0);
  server_.set_rule([](const served_request& asked) {
    if (asked.target == "/agent") return answer(keys_text("AGENT"));
    const std::string by = asked.value("authorization");
    const std::size_t begin = by.find("Credential=") + 11;
    return answer("<R><AccessKeyId>ROLE-BY-" + by.substr(begin, by.find('/') - begin) +
                  "</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>hush-too</SessionToken>"
                  "<Expiration>" +
                  time_text(3600) + "</Expiration></R>");
  });
  const auto id_of = [this](const std::string& name, std::map<std::string, std::string> more = {}) {
    more["AWS_ENDPOINT_URL_STS"] = server_.address("");
    return find(std::move(more), {.profile = name}).keys.id;
  };
  EXPECT_EQ(id_of("own"), "ROLE-BY-OWN");
  EXPECT_EQ(id_of("here", {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "hush"}}), "ROLE-BY-E");
  EXPECT_EQ(id_of("there", container()), "ROLE-BY-AGENT");
}

TEST_F(temporary_credentials, of_a_container_and_of_a_machine_come_by_their_own_ways) {
  server_.set_rule([](const served_request& asked) {
    EXPECT_EQ(asked.target, "/agent");
    EXPECT_EQ(asked.value("authorization"), "agent-token");
    return answer(keys_text("AGENT"));
  });
  EXPECT_EQ(find(container()).keys.id, "AGENT");
  for (const char* const far :
       {"http://example.org/keys", "http://127.0.0.1.example.org/keys", "http://169.254.example.org/keys",
        "http://10.0.0.1/keys", "http://[2001:db8::1]/keys"}) {
    EXPECT_THAT(said({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", far}}), HasSubstr("https:// only")) << far;
  }
  server_.set_rule([](const served_request& asked) {
    const std::string roles = "/latest/meta-data/iam/security-credentials/";
    if (asked.target == "/latest/api/token") {
      EXPECT_TRUE(asked.header.starts_with("PUT "));
      EXPECT_EQ(asked.value("x-aws-ec2-metadata-token-ttl-seconds"), "300");
      return answer("machine-token");
    }
    EXPECT_EQ(asked.value("x-aws-ec2-metadata-token"), "machine-token");
    if (asked.target == roles) return answer("train-role\n");
    EXPECT_EQ(asked.target, roles + "train-role");
    return answer(keys_text("MACHINE"));
  });
  std::map<std::string, std::string> machine = {{"AWS_EC2_METADATA_DISABLED", ""},
                                                {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_.address("")}};
  EXPECT_EQ(find(machine).keys.id, "MACHINE");
  server_.set_rule([](const served_request&) { return http_fault{.what = http_fault::kind::stall}; });
  EXPECT_THAT(said(machine), AllOf(HasSubstr("no keys for s3://"), HasSubstr("/latest/api/token")))
      << "it says nothing";
}

// said() looks that no "hush" is shown.
TEST_F(temporary_credentials, are_not_asked_for_with_a_token_that_would_be_two_headers) {
  server_.set_rule([](const served_request& asked) {
    EXPECT_EQ(asked.target, "/latest/api/token") << asked.header;
    return answer("hush\r\nx-other: 1");
  });
  std::map<std::string, std::string> container_with_two = container();
  container_with_two["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "hush\r\nx-other: 1";
  EXPECT_THAT(said(container_with_two), AllOf(HasSubstr("/agent"), HasSubstr("as authorization has line breaks")));
  EXPECT_THAT(said({{"AWS_EC2_METADATA_DISABLED", ""}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_.address("")}}),
              HasSubstr("as x-aws-ec2-metadata-token has line breaks"));
}

TEST_F(temporary_credentials, are_printed_by_a_program) {
  std::ofstream(path("keys")) << keys_text("PRINTED");
  std::ofstream(path("config")) << "[default]\ncredential_process = cat '" << path("keys")
                                << "'\n[profile broken]\ncredential_process = echo hush; exit 3\n[profile odd]\n"
                                   "credential_process = echo '{\"AccessKeyId\": \"hush\"}'\n";
  EXPECT_EQ(find({}).keys.id, "PRINTED");
  EXPECT_THAT(said({{"AWS_PROFILE", "broken"}}), HasSubstr("exit 3"));
  EXPECT_THAT(said({{"AWS_PROFILE", "odd"}}), HasSubstr("no keys in it"));
}

TEST_F(temporary_credentials, are_not_waited_for_for_ever_where_a_program_hangs_and_what_it_started_is_killed) {
  const std::string fifo = path("held");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int held = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(held, 0);
  const auto end_of = [](const std::string& command, std::chrono::milliseconds patience) {
    std::string why;
    io::provider_settings settings;
    settings.credential_process = command;
    settings.program_patience = patience;
    return message_of(errc::io, [&] {
      static_cast<void>(io::find_temporary_credentials(settings, {}, [](const char*) { return std::string(); }, why));
    });
  };
  // Whatever hangs: the program, what it has left behind with its output, or the program with its output closed.
  for (const std::string hangs : {"sleep 1000; echo hush", "sleep 1000 & exit 0", "exec >&-; sleep 1000"}) {
    EXPECT_THAT(end_of("exec 5>'" + fifo + "'; " + hangs, std::chrono::milliseconds(20)),
                AllOf(HasSubstr("0.02 s"), Not(HasSubstr("hush"))));
    // No process has it open any more: the end of the file, once a kill has taken effect.
    ASSERT_EQ(::fcntl(held, F_SETFL, 0), 0);
    char none = 0;
    EXPECT_EQ(::read(held, &none, 1), 0) << hangs;
  }
  EXPECT_THAT(end_of("exec yes hush", std::chrono::minutes(5)),
              AllOf(HasSubstr("prints more than"), Not(HasSubstr("hush"))));
  ::close(held);
}

TEST_F(temporary_credentials, are_renewed_before_they_expire) {
  const auto seconds_until = [](std::int64_t expires_in_s) {
    return std::chrono::duration<double>(io::time_to_renewal(expires_in_s, {})).count();
  };
  EXPECT_EQ(seconds_until(3600), 3300);
  EXPECT_EQ(seconds_until(599), 299.5) << "at half their time";
  EXPECT_EQ(seconds_until(2), 10) << "not more often";
  EXPECT_EQ(seconds_until(0), 60) << "where the clock may be wrong";
  EXPECT_EQ(seconds_until(std::numeric_limits<std::int64_t>::min()), 60);
  EXPECT_LE(seconds_until(std::numeric_limits<std::int64_t>::max()), 31'536'000);

  std::atomic<int> asked{0};
  io::renewed_credentials keys(
      [&asked]() -> io::temporary_credentials {
        const int number = asked++;
        if (number == 1) throw error(errc::io, "not now");
        return {{"KEY" + std::to_string(number), "hush"}, std::time(nullptr) + (number == 0 ? -1 : 3600)};
      },
      {.expired_min = std::chrono::milliseconds(1), .after_asking = std::chrono::milliseconds(1)});
  const testing::watchdog dog("keys are renewed, though the first try fails");
  const auto first = keys.now();
  while (keys.now()->id != "KEY2") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(keys.have_expired(first)) << "others are there";
}

TEST_F(temporary_credentials, that_are_refused_are_asked_for_at_once_but_not_at_once_again) {
  std::atomic<int> asked{0};
  io::renewed_credentials keys([&asked]() -> io::temporary_credentials {
    if (asked++ > 0) throw error(errc::io, "not now");
    return {{"KEY", "hush"}, std::time(nullptr) + 3600};
  });
  const testing::watchdog dog("keys that are refused are asked for");
  const auto first = keys.now();
  EXPECT_TRUE(keys.have_expired(first));
  while (asked < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // It has failed, and the next try is 10 s away.
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(keys.have_expired(first)) << "others may still come";
  io::renewed_credentials for_good([]() -> io::temporary_credentials { return {{"KEY", "hush"}, std::nullopt}; });
  EXPECT_FALSE(for_good.have_expired(for_good.now()));
}

TEST_F(temporary_credentials, that_a_store_says_have_expired_are_asked_for_at_once_and_the_read_goes_on) {
  const std::string content = "what is wanted";
  server_.put("bucket/a.bin", content);
  std::atomic<int> asked_agent{0};
  std::atomic<bool> agent_renews{true};
  server_.set_rule([&](const served_request& asked) {
    if (asked.target == "/agent") return answer(keys_text(agent_renews && asked_agent++ > 0 ? "NEW" : "OLD"));
    if (asked.value("authorization").find("Credential=NEW/") != std::string::npos) return http_fault();
    return http_fault{.what = http_fault::kind::status,
                      .status = 400,
                      .body = "<Error><Code>ExpiredToken</Code><Message>hush</Message></Error>"};
  });
  {
    const io::s3_access store = find(container());
    EXPECT_EQ(store.keys.id, "OLD");
    const whole_object got = read(store, content.size());
    EXPECT_EQ(got.end, io::fetch_end::whole) << got.why;
    EXPECT_EQ(got.bytes, content);
    EXPECT_EQ(asked_agent, 2);
  }
  agent_renews = false;
  const whole_object refused =
      read(find(container()), content.size(), {.keys_patience = std::chrono::milliseconds(30)});
  EXPECT_EQ(refused.end, io::fetch_end::failed);
  EXPECT_THAT(refused.why, AllOf(HasSubstr("expired"), HasSubstr("who provides them"), Not(HasSubstr("hush"))));
}

TEST_F(temporary_credentials, that_are_long_in_coming_take_no_tries_of_the_reads_that_wait) {
  const std::string content = "what is wanted";
  server_.put("bucket/a.bin", content);
  std::atomic<std::size_t> refused{0};
  server_.set_rule([&](const served_request& asked) {
    if (asked.value("authorization").find("Credential=NEW/") != std::string::npos) return http_fault();
    ++refused;
    return http_fault{
        .what = http_fault::kind::status, .status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};
  });
  constexpr std::size_t reads = 8;
  std::atomic<int> asked{0};
  const testing::watchdog dog("reads wait for keys");
  // The provider fails, and then takes until all of them have been refused.
  const io::s3_access store = provided_by(
      [&]() -> io::temporary_credentials {
        const int number = asked++;
        if (number == 1) throw error(errc::io, "not now");
        while (number > 1 && refused < reads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return {{number == 0 ? "OLD" : "NEW", "hush"}, std::time(nullptr) + 3600};
      },
      {.after_asking = std::chrono::milliseconds(1)});
  for (const whole_object& one : read_at_once(reads, store, content.size(), {.tries_max = 1})) {
    EXPECT_EQ(one.end, io::fetch_end::whole) << one.why;
    EXPECT_EQ(one.bytes, content);
  }
}

TEST_F(temporary_credentials, that_have_expired_are_noticed_where_a_store_says_so_in_chunks) {
  const std::string content = "what is wanted";
  server_.put("bucket/a.bin", content);
  server_.set_rule([&](const served_request& asked) {
    if (asked.value("authorization").find("Credential=NEW/") != std::string::npos) return http_fault();
    return http_fault{.what = http_fault::kind::status,
                      .status = 400,
                      .headers = "Transfer-Encoding: chunked\r\n",
                      .body = "12\r\n<Error><Code>Expir\r\n16\r\nedToken</Code></Error>\r\n0\r\n\r\n"};
  });
  std::atomic<int> asked{0};
  const testing::watchdog dog("an error's words are read");
  const whole_object got = read(provided_by([&]() -> io::temporary_credentials {
                                  return {{asked++ == 0 ? "OLD" : "NEW", "hush"}, std::time(nullptr) + 3600};
                                }),
                                content.size());
  EXPECT_EQ(got.end, io::fetch_end::whole) << got.why;
  EXPECT_EQ(got.bytes, content);
}

TEST_F(temporary_credentials, are_renewed_in_a_child_of_fork_whatever_the_thread_of_the_parent_did) {
  if (LEAT_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer does not follow a fork of several threads";
  const pid_t parent = ::getpid();
  std::promise<void> is_asked;
  std::promise<void> forked;
  std::shared_future<void> may_answer = forked.get_future().share();
  std::atomic<int> asked{0};
  auto keys = std::make_unique<io::renewed_credentials>([&]() -> io::temporary_credentials {
    const int number = asked++;
    if (::getpid() != parent) return {{"CHILD", "hush"}, std::time(nullptr) + 3600};
    if (number == 1) {
      is_asked.set_value();
      may_answer.wait();
    }
    return {{"PARENT" + std::to_string(number), "hush"}, std::time(nullptr) + 3600};
  });
  std::ofstream(path("keys")) << keys_text("SHARED");
  std::ofstream(path("config")) << "[default]\ncredential_process = cat '" << path("keys") << "'\n";
  const io::s3_access of_parent = find({});
  const testing::watchdog dog("keys are renewed beside a fork");
  const auto first = keys->now();
  EXPECT_TRUE(keys->have_expired(first));
  is_asked.get_future().wait();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    int wrong = 0;
    const auto of_child = keys->now();
    if (of_child->id != "PARENT0" && of_child->id != "CHILD") wrong = 1;
    while (keys->now()->id != "CHILD") ::usleep(1'000);
    if (!keys->have_expired(first)) wrong = 2;
    keys.reset();
    try {
      if (find({}).renewed == of_parent.renewed) wrong = 3;
    } catch (const std::exception&) {
      wrong = 4;
    }
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  forked.set_value();
  while (keys->now() == first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(keys->now()->id, "PARENT1") << "the parent goes on";
}

TEST_F(temporary_credentials, of_one_lender_are_not_waited_for_by_who_asks_another_one) {
  const std::string fifo = path("slow");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(path("keys")) << keys_text("QUICK");
  std::ofstream(path("config")) << "[profile slow]\ncredential_process = cat '" << fifo
                                << "'\n[profile quick]\ncredential_process = cat '" << path("keys") << "'\n";
  const testing::watchdog dog("a provider is waited for");
  std::future<std::string> slow =
      std::async(std::launch::async, [&] { return find({{"AWS_PROFILE", "slow"}}).keys.id; });
  std::ofstream answers(fifo);  // opened once the slow one reads
  EXPECT_EQ(find({{"AWS_PROFILE", "quick"}}).keys.id, "QUICK");
  answers << keys_text("SLOW");
  answers.close();
  EXPECT_EQ(slow.get(), "SLOW");
}

TEST_F(temporary_credentials, whose_times_are_none_are_refused) {
  EXPECT_EQ(io::parse_time("1970-01-02T00:00:01Z"), 86'401);
  EXPECT_EQ(io::parse_time("2013-05-24T00:00:00.123Z"), 1'369'353'600);
  EXPECT_EQ(io::parse_time("2013-05-24T02:30:00+02:30"), 1'369'353'600);
  EXPECT_EQ(io::parse_time("2013-05-23T21:00:00.5-0300"), 1'369'353'600);
  EXPECT_EQ(io::parse_time("2013-05-24T01:00:00+01"), 1'369'353'600);
  for (const char* const bad : {"", "now", "2013-05-24", "2013-05-24T00:00:00", "2013-13-24T00:00:00Z",
                                "2013-05-24T00:00:00+2", "2013-05-24T00:00:00+24:00", "2013-05-24T00:00:00+0:200",
                                "2013-05-24T00:00:00 +02:00", "2013-05-24T00:00:00+"}) {
    EXPECT_EQ(io::parse_time(bad), std::nullopt) << bad;
  }
  for (const char* const bad : {"", "[]", "{}", R"({"AccessKeyId": 7, "SecretAccessKey": "b"})",
                                R"({"AccessKeyId": "a\nb", "SecretAccessKey": "b"})",
                                R"({"AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "soon"})"}) {
    EXPECT_THROW(static_cast<void>(io::parse_temporary_credentials(bad, "AccessKeyId")), error) << bad;
  }
  EXPECT_THAT(
      message_of(errc::io,
                 [] {
                   static_cast<void>(io::parse_temporary_credentials(
                       R"({"AccessKeyId": "a", "SecretAccessKey": "hush", "Expiration": "soon"})", "AccessKeyId"));
                 }),
      AllOf(HasSubstr("Expiration"), Not(HasSubstr("hush"))));
}

}  // namespace
}  // namespace leat::testing
