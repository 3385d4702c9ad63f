#include "io/remote/credential_providers.hpp"

#include "base/errno_words.hpp"
#include "base/mutex.hpp"
#include "base/per_process.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/shell_output.hpp"

#include <leat/error.hpp>

#include <arpa/inet.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::io {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{64} << 10;
constexpr std::size_t token_bytes_max = std::size_t{64} << 10;

/// A question over HTTP whose answer is waited for.
struct question {
  std::string method = "GET";
  std::string url;
  std::vector<header_line> headers = {};
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  std::uint32_t tries = 3;
  const s3_access* signs = nullptr;
};

// A token is a header's whole value; what is wrong with it is not shown.
void refuse_line_breaks(const question& asked, const address& where) {
  for (const header_line& each : asked.headers) {
    const bool is_one_line = std::all_of(each.value.begin(), each.value.end(), is_printable);
    if (is_one_line) continue;
    throw error(errc::permission,
                str_cat(where.shown, ": what is to be sent there as ", each.name,
                        " has line breaks or other letters that a header cannot hold; look at where it comes from"));
  }
}

std::string ask(const question& asked, const remote_options& options) {
  remote_options settings;
  settings.ca_file = options.ca_file;
  settings.allow_http = false;  // where a redirect leads
  settings.patience = asked.patience;
  settings.silence_max = asked.patience;
  http_client client(settings, {.tries_max = asked.tries}, asked.signs);
  const address where = parse_address(asked.url);
  refuse_line_breaks(asked, where);
  auto wanted = std::make_shared<fetch>();
  wanted->where = &where;
  wanted->method = asked.method;
  wanted->headers = asked.headers;
  wanted->is_signed = asked.signs != nullptr;
  wanted->whole_bytes_max = answer_bytes_max;
  client.fetch_now(wanted);
  if (wanted->end == fetch_end::whole) return std::move(wanted->whole);
  throw error(wanted->end == fetch_end::refused ? errc::permission : errc::io, str_cat(where.shown, ": ", wanted->why));
}

std::string trimmed_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(errc::io, str_cat(path, ": ", errno_words(errno)));
  std::string text;
  for (char each = 0; text.size() < token_bytes_max && in.get(each);) text += each;
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

template <class Parse>
temporary_credentials parsed(const std::string& who, std::string answer, const Parse& parse) {
  try {
    temporary_credentials renewed = parse(answer);
    ::OPENSSL_cleanse(answer.data(), answer.size());
    return renewed;
  } catch (const error& failed) {
    ::OPENSSL_cleanse(answer.data(), answer.size());
    throw error(failed.code(), str_cat(who, ": ", failed.what()));
  }
}

// Keys in the clear go nowhere else: this machine, and what answers on its own link.
// Numbers only, since a name such as 127.0.0.1.example leads anywhere.
bool is_near(const address& where) {
  if (where.tls || where.host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, where.host.c_str(), &v4) == 1) {
    const std::uint32_t number = ntohl(v4.s_addr);
    constexpr std::uint32_t loopback = 127;
    constexpr std::uint32_t link_local = 169U << 8 | 254;
    return number >> 24 == loopback || number >> 16 == link_local;
  }
  in6_addr v6{};
  return where.host == "::1" || where.host == "fd00:ec2::254" || where.host == "fd00:ec2::23" ||
         (::inet_pton(AF_INET6, where.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LINKLOCAL(&v6));
}
void refuse_far(const std::string& variable, const std::string& url) {
  const auto where = [&] {
    try {
      return parse_address(url);
    } catch (const error& failed) {
      throw error(failed.code(), str_cat(variable, ": ", failed.what()));
    }
  }();
  if (is_near(where)) return;
  throw error(errc::usage, str_cat(variable, " is ", redacted(url),
                                   ": keys come over https:// only, or from this machine's own link (127.0.0.1, "
                                   "169.254.170.2)"));
}

// With a slash at its end.
std::string sts_at(const std::string& region, const environment& from) {
  std::string endpoint = from("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = sts_endpoint(region);
  refuse_far("AWS_ENDPOINT_URL_STS", endpoint);
  if (!endpoint.ends_with('/')) endpoint += '/';
  return endpoint;
}
std::string session_name(const std::string& given) { return given.empty() ? "leat" : given; }

credential_provider by_web_identity(const provider_settings& settings, const remote_options& options,
                                    const environment& from) {
  const std::string endpoint = sts_at(settings.region, from);
  return [settings, options, endpoint] {
    const std::string token = trimmed_file(settings.web_identity_token_file);
    std::string url =
        str_cat(endpoint, "?Action=AssumeRoleWithWebIdentity&RoleArn=", aws_encoded(settings.role_arn, false),
                "&RoleSessionName=", aws_encoded(session_name(settings.role_session_name), false),
                "&Version=2011-06-15&WebIdentityToken=", aws_encoded(token, false));
    return parsed(str_cat("the role ", settings.role_arn), ask({.url = std::move(url)}, options), parse_role_keys);
  };
}

credential_provider by_role(const role_settings& settings, const role_source& source, const remote_options& options,
                            const environment& from) {
  const std::string endpoint = sts_at(settings.region, from);
  return [settings, source, options, endpoint] {
    const std::string who = str_cat("the role ", settings.role_arn, ", asked for with the keys of ", source.from);
    s3_access signs;
    signs.keys = source.renewed ? *source.renewed->now() : source.keys;
    signs.region = settings.region;
    signs.service = "sts";
    // In the order of the names, as the signature wants them.
    std::string url = str_cat(endpoint, "?Action=AssumeRole");
    if (settings.duration_s != 0) str_append(url, "&DurationSeconds=", settings.duration_s);
    if (!settings.external_id.empty()) str_append(url, "&ExternalId=", aws_encoded(settings.external_id, false));
    str_append(url, "&RoleArn=", aws_encoded(settings.role_arn, false),
               "&RoleSessionName=", aws_encoded(session_name(settings.role_session_name), false),
               "&Version=2011-06-15");
    std::string told;
    try {
      told = ask({.url = std::move(url), .signs = &signs}, options);
    } catch (const error& failed) {
      throw error(
          failed.code(),
          str_cat(who, ": ", failed.what(),
                  failed.code() == errc::permission ? " (who may take the role is said by its trust policy)" : ""));
    }
    return parsed(who, std::move(told), parse_role_keys);
  };
}

credential_provider by_program(const std::string& command, std::chrono::milliseconds patience) {
  return [command, patience] {
    shell_result ran = shell_output(command, answer_bytes_max, patience);
    const auto fail = [&](errc code, const std::string& why) {
      ::OPENSSL_cleanse(ran.text.data(), ran.text.size());
      throw error(code, str_cat("credential_process: ", why));
    };
    if (ran.is_late) {
      fail(errc::io, str_cat("the program had not ended after ", static_cast<double>(patience.count()) / 1000,
                             " s and was killed; run it by hand: it must not ask anybody anything"));
    }
    if (ran.is_large) fail(errc::io, str_cat("the program prints more than ", bytes_text(answer_bytes_max)));
    if (ran.exit_status != 0) {
      fail(errc::permission, str_cat("the program has failed (exit ", ran.exit_status, "); run it by hand"));
    }
    return parsed("credential_process", std::move(ran.text),
                  [](const std::string& json) { return parse_temporary_credentials(json, "AccessKeyId"); });
  };
}

std::optional<credential_provider> by_container(const remote_options& options, const environment& from) {
  const std::string relative = from("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string url =
      relative.empty() ? from("AWS_CONTAINER_CREDENTIALS_FULL_URI") : str_cat("http://169.254.170.2", relative);
  if (url.empty()) return std::nullopt;
  refuse_far("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
  const std::string token_file = from("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const std::string token = from("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  return [=] {
    question asked{.url = url};
    const std::string now = token_file.empty() ? token : trimmed_file(token_file);
    if (!now.empty()) asked.headers.push_back({"authorization", now});
    return parsed("the container's agent", ask(asked, options),
                  [](const std::string& json) { return parse_temporary_credentials(json, "AccessKeyId"); });
  };
}

// A machine that has no such service is asked once, for a second.
std::optional<credential_provider> by_machine(const remote_options& options, const environment& from) {
  if (from("AWS_EC2_METADATA_DISABLED") == "true") return std::nullopt;
  std::string endpoint = from("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = "http://169.254.169.254";
  refuse_far("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return [=] {
    const auto patience = std::chrono::milliseconds(1000);
    const std::string token = ask({.method = "PUT",
                                   .url = endpoint + "/latest/api/token",
                                   .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "300"}},
                                   .patience = patience,
                                   .tries = 1},
                                  options);
    const auto tell = [&](const std::string& path) {
      return ask({.url = endpoint + "/latest/meta-data/iam/security-credentials/" + path,
                  .headers = {{"x-aws-ec2-metadata-token", token}},
                  .patience = patience},
                 options);
    };
    std::string role = tell("");
    role.resize(std::min(role.find_first_of("\r\n"), role.size()));
    return parsed("the machine's metadata", tell(percent_encoded(role, "-._~")),
                  [](const std::string& json) { return parse_temporary_credentials(json, "AccessKeyId"); });
  };
}

// Those that one provider has given. It is asked by one at a time; other providers are not waited for.
struct shared_place {
  mutex asking;
  std::weak_ptr<renewed_credentials> keys ABSL_GUARDED_BY(asking);
};
struct shared_places {
  mutex guard;
  std::map<std::string, shared_place> by_question ABSL_GUARDED_BY(guard);
};
per_process<shared_places> all_places;

// By what they were asked with: a dataset is opened in several steps, and a program opens several.
shared_place& place_of(const std::string& asked_with) {
  shared_places& all = all_places.get([](const shared_places*) { return std::make_unique<shared_places>(); });
  const mutex_lock lock(all.guard);
  return all.by_question[asked_with];  // none is ever taken out
}
std::shared_ptr<renewed_credentials> shared(const std::string& asked_with, const credential_provider& provider) {
  shared_place& place = place_of(asked_with);
  const mutex_lock lock(place.asking);
  std::shared_ptr<renewed_credentials> there = place.keys.lock();
  if (!there) place.keys = there = std::make_shared<renewed_credentials>(provider);
  return there;
}

}  // namespace

std::string sts_endpoint(const std::string& region) {
  return str_cat("https://sts.", region, ".amazonaws.com", region.starts_with("cn-") ? ".cn" : "");
}

std::shared_ptr<renewed_credentials> find_temporary_credentials(const provider_settings& settings,
                                                                const remote_options& options, const environment& from,
                                                                std::string& why) {
  if (!settings.role_arn.empty() && !settings.web_identity_token_file.empty()) {
    return shared(
        str_cat("role\n", settings.role_arn, "\n", settings.role_session_name, "\n", settings.web_identity_token_file,
                "\n", settings.region, "\n", from("AWS_ENDPOINT_URL_STS"), "\n", options.ca_file),
        by_web_identity(settings, options, from));
  }
  if (!settings.credential_process.empty())
    return shared(str_cat("program\n", settings.credential_process),
                  by_program(settings.credential_process, settings.program_patience));
  if (std::shared_ptr<renewed_credentials> container = keys_by_container(options, from)) return container;
  return keys_by_machine(options, from, why);
}

std::shared_ptr<renewed_credentials> keys_by_role(const role_settings& settings, const role_source& source,
                                                  const remote_options& options, const environment& from) {
  // Temporary credentials are told apart by who provides them, who lives as long as who is asked with them.
  const std::string by = source.renewed ? str_cat(reinterpret_cast<std::uintptr_t>(source.renewed.get()))
                                        : str_cat(source.keys.id, "\n", source.from);
  return shared(str_cat("role with keys\n", settings.role_arn, "\n", settings.role_session_name, "\n",
                        settings.external_id, "\n", settings.duration_s, "\n", settings.region, "\n",
                        from("AWS_ENDPOINT_URL_STS"), "\n", options.ca_file, "\n", by),
                by_role(settings, source, options, from));
}

std::shared_ptr<renewed_credentials> keys_by_container(const remote_options& options, const environment& from) {
  const std::optional<credential_provider> container = by_container(options, from);
  if (!container) return nullptr;
  return shared(str_cat("container\n", from("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), "\n",
                        from("AWS_CONTAINER_CREDENTIALS_FULL_URI")),
                *container);
}

std::shared_ptr<renewed_credentials> keys_by_machine(const remote_options& options, const environment& from,
                                                     std::string& why) {
  const std::optional<credential_provider> machine = by_machine(options, from);
  if (!machine) return nullptr;
  try {
    return shared(str_cat("machine\n", from("AWS_EC2_METADATA_SERVICE_ENDPOINT")), *machine);
  } catch (const error& failed) {
    why = failed.what();
    return nullptr;
  }
}

}  // namespace leat::io
