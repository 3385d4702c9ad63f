#include "io/remote/s3.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/remote/credential_providers.hpp"
#include "io/remote/profiles.hpp"
#include "io/remote/renewed_credentials.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace leat::io {
namespace {

std::string first_of(std::initializer_list<std::string_view> choices) {
  for (const std::string_view each : choices) {
    if (!each.empty()) return std::string(each);
  }
  return {};
}

// What an endpoint begins with whose buckets are hosts of their own.
constexpr std::string_view bucket_mark = "{bucket}.";

// As EKS sets it. A profile that was asked for comes before.
bool has_role_of_environment(const remote_options& options, const environment& from) {
  return options.profile.empty() && !from("AWS_ROLE_ARN").empty() && !from("AWS_WEB_IDENTITY_TOKEN_FILE").empty();
}

}  // namespace

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
  });
}

std::string_view what_is_wrong_with(const access_keys& keys) {
  if (keys.secret.empty()) return "an access key for s3:// was given without its secret; give both";
  const auto has_blanks = [](const std::string& text) {
    return std::any_of(text.begin(), text.end(), [](char letter) { return letter <= 0x20 || letter > 0x7E; });
  };
  if (has_blanks(keys.id) || has_blanks(keys.token))
    return "the access key or session token for s3:// has blanks or line ends in it; copy it again";
  return {};
}

environment of_process() {
  return [](const char* name) {
    const char* const found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
}

s3_access find_s3_access(const remote_options& options, const environment& from) {
  const profile_files files(from);
  const profile chosen = files.named(first_of({options.profile, from("AWS_PROFILE"), "default"}));
  const auto of_profile = [&](std::string_view name) { return chosen.value(name); };

  s3_access found;
  found.region =
      first_of({options.region, from("AWS_REGION"), from("AWS_DEFAULT_REGION"), of_profile("region"), "us-east-1"});
  if (!is_region(found.region))
    throw error(errc::usage, str_cat("'", found.region, "' is no name of a region, as us-east-1 is"));
  const std::string endpoint =
      first_of({options.endpoint, from("AWS_ENDPOINT_URL_S3"), from("AWS_ENDPOINT_URL"), of_profile("endpoint_url")});
  if (!endpoint.empty()) {
    if (!is_address(endpoint) || is_s3(endpoint))
      throw error(errc::usage, str_cat(endpoint.find('@') == std::string::npos ? redacted(endpoint) : "endpoint",
                                       ": an endpoint is an address, as https://s3.example.org"));
    if (endpoint.find_first_of("?#") != std::string::npos)
      throw error(errc::usage,
                  str_cat(redacted(endpoint), ": an endpoint has no query; leave out what follows its path"));
    const std::size_t mark = endpoint.find(bucket_mark);
    found.has_bucket_in_host = mark != std::string::npos;
    if (found.has_bucket_in_host && !endpoint.substr(0, mark).ends_with("://")) {
      throw error(errc::usage, str_cat(redacted(endpoint),
                                       ": {bucket} is what the host begins with, as in "
                                       "https://{bucket}.s3.example.org"));
    }
    found.endpoint = parse_address(found.has_bucket_in_host
                                       ? str_cat(endpoint.substr(0, mark), endpoint.substr(mark + bucket_mark.size()))
                                       : endpoint);
    if (!found.endpoint->tls && !options.allow_http) {
      throw error(errc::usage,
                  str_cat(found.endpoint->shown,
                          ": what comes over http:// can be read and changed on its way; give "
                          "https://, or ",
                          spelled(option_id::allow_http)),
                  option_id::allow_http);
    }
  }
  found.ca_file = first_of({from("AWS_CA_BUNDLE"), of_profile("ca_bundle")});
  if (options.anonymous) {
    found.keys_from = "none: requests are not signed";
    return found;
  }
  const std::string of_named_profile = str_cat("the profile '", chosen.name(), "'");
  if (!options.access_key_id.empty()) {
    found.keys = {options.access_key_id, options.secret_access_key, options.session_token};
    found.keys_from = "the options";
  } else if (options.profile.empty() && !from("AWS_ACCESS_KEY_ID").empty()) {
    found.keys = {from("AWS_ACCESS_KEY_ID"), from("AWS_SECRET_ACCESS_KEY"), from("AWS_SESSION_TOKEN")};
    found.keys_from = "AWS_ACCESS_KEY_ID";
  } else if (!has_role_of_environment(options, from) && chosen.takes_role()) {
    found.renewed = keys_of_role(chosen, files, found.region, options, from);
    found.keys = *found.renewed->now();
    found.keys_from = str_cat("the role of ", of_named_profile);
  } else if (!has_role_of_environment(options, from) && !of_profile("aws_access_key_id").empty()) {
    found.keys = {of_profile("aws_access_key_id"), of_profile("aws_secret_access_key"),
                  of_profile("aws_session_token")};
    found.keys_from =
        str_cat(of_named_profile, " in ",
                chosen.is_in_credentials("aws_access_key_id") ? files.credentials_path() : files.config_path());
  } else {
    provider_settings settings;
    settings.region = found.region;
    if (has_role_of_environment(options, from)) {
      settings.role_arn = from("AWS_ROLE_ARN");
      settings.web_identity_token_file = from("AWS_WEB_IDENTITY_TOKEN_FILE");
      settings.role_session_name = from("AWS_ROLE_SESSION_NAME");
      found.keys_from = "a role by the web identity of AWS_WEB_IDENTITY_TOKEN_FILE";
    } else {
      settings.role_arn = of_profile("role_arn");
      settings.web_identity_token_file = of_profile("web_identity_token_file");
      settings.role_session_name = of_profile("role_session_name");
      settings.credential_process = of_profile("credential_process");
      const bool is_temporary = !settings.web_identity_token_file.empty() || !settings.credential_process.empty();
      for (const std::string_view way : {"sso_session", "sso_start_url"}) {
        if (is_temporary || of_profile(way).empty()) continue;
        throw error(errc::unsupported,
                    str_cat(of_named_profile, " has its keys by ", way,
                            ", which leat does not know, so far; give it `credential_process = aws configure "
                            "export-credentials --profile ",
                            chosen.name(), "` in a profile of its own"));
      }
      if (!is_temporary && !settings.role_arn.empty()) {
        throw error(errc::usage, str_cat(of_named_profile,
                                         " has a role_arn, and does not say with whose keys it is asked for; give it "
                                         "source_profile, credential_source or web_identity_token_file"));
      }
    }
    std::string why;
    found.renewed = find_temporary_credentials(settings, options, from, why);
    if (!found.renewed) {
      throw error(errc::usage,
                  str_cat("no keys for s3:// were found: neither AWS_ACCESS_KEY_ID is set, nor has ",
                          files.credentials_path(), " or ", files.config_path(), " any for ", of_named_profile,
                          ", and nobody provides them", why.empty() ? "" : str_cat(" (", why, ")"),
                          "; a bucket that all may read is read with ", spelled(option_id::anonymous)),
                  option_id::anonymous);
    }
    found.keys = *found.renewed->now();
    if (found.keys_from.empty()) {
      const bool has_role = !settings.role_arn.empty() && !settings.web_identity_token_file.empty();
      const bool has_container = !from("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
                                 !from("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty();
      found.keys_from = has_role ? str_cat("a role by the web identity of ", of_named_profile)
                        : !settings.credential_process.empty() ? str_cat("the credential_process of ", of_named_profile)
                        : has_container                        ? std::string("the container's agent")
                                                               : std::string("the machine (IMDSv2)");
    }
  }
  if (const std::string_view why = what_is_wrong_with(found.keys); !why.empty())
    throw error(errc::usage, std::string(why));
  return found;
}

s3_name parse_s3_name(std::string_view text) {
  const std::string_view rest = text.substr(std::min<std::size_t>(text.size(), 5));
  const std::size_t slash = rest.find('/');
  s3_name found{std::string(rest.substr(0, slash)),
                slash == std::string_view::npos ? "" : std::string(rest.substr(slash + 1))};
  const bool is_bucket = found.bucket.size() >= 3 && found.bucket.size() <= 63 &&
                         std::all_of(found.bucket.begin(), found.bucket.end(), [](char letter) {
                           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                                  letter == '-' || letter == '.' || letter == '_';
                         });
  if (text.starts_with("s3://") && !found.bucket.empty() && !is_bucket) {
    throw error(errc::usage, str_cat(redacted(text), ": '", redacted(found.bucket),
                                     "' is no name of a bucket, which has 3 to 63 small letters, digits, dots and "
                                     "hyphens; check it"));
  }
  if (!text.starts_with("s3://") || !is_bucket || found.key.empty()) {
    throw error(errc::usage, str_cat(redacted(text), ": this is no address of an object; write s3://bucket/key"));
  }
  return found;
}

address address_of(const s3_name& name, const s3_access& at) {
  address found;
  const std::string key = aws_encoded(name.key, true);
  if (at.endpoint) {
    found = *at.endpoint;
    std::string below = found.target.substr(0, found.target.find('?'));
    if (!below.ends_with('/')) below += '/';
    if (at.has_bucket_in_host) found.host = str_cat(name.bucket, ".", found.host);
    found.target = str_cat(below, at.has_bucket_in_host ? "" : str_cat(name.bucket, "/"), key);
  } else if (name.bucket.find('.') != std::string::npos) {
    // A certificate for *.s3.amazonaws.com is not good for names with a dot more.
    found.host = str_cat("s3.", at.region, ".amazonaws.com");
    found.target = str_cat("/", name.bucket, "/", key);
  } else {
    found.host = str_cat(name.bucket, ".s3.", at.region, ".amazonaws.com");
    found.target = str_cat("/", key);
  }
  if (at.region.starts_with("cn-") && !at.endpoint) found.host += ".cn";
  found.shown = redacted(str_cat("s3://", name.bucket, "/", name.key));
  return found;
}

}  // namespace leat::io
