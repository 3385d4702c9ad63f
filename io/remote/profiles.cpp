#include "io/remote/profiles.hpp"

#include "base/text.hpp"
#include "base/words.hpp"
#include "io/remote/credential_providers.hpp"
#include "io/remote/renewed_credentials.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

namespace leat::io {
namespace {

constexpr std::size_t profile_bytes_max = std::size_t{1} << 20;
constexpr std::size_t roles_in_a_row_max = 5;

// One section of a file as AWS's tools write it; empty where there is none.
profile::section section_of(const std::string& path, std::string_view name) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (char each = 0; text.size() < profile_bytes_max && in.get(each);) text += each;
  profile::section found;
  bool is_inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view whole = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      std::string_view title = trimmed(line.substr(1, std::min(line.find(']'), line.size()) - 1));
      if (title.starts_with("profile ")) title = trimmed(title.substr(8));
      is_inside = title == name;
      continue;
    }
    const std::size_t equals = line.find('=');
    // Lines that are moved in belong to the one before: settings of "s3 =", of which none is needed.
    if (!is_inside || equals == std::string_view::npos || whole.front() == ' ' || whole.front() == '\t') continue;
    found.insert_or_assign(std::string(trimmed(line.substr(0, equals))), std::string(trimmed(line.substr(equals + 1))));
  }
  return found;
}

// Who is being asked for keys of a role: profiles, from the first one on.
class role_chain {
 public:
  role_chain(const profile_files& files, const remote_options& options, const environment& from)
      : files_(files), options_(options), from_(from) {}

  std::shared_ptr<renewed_credentials> role_of(const profile& of, const std::string& region) {
    if (std::find(names_.begin(), names_.end(), of.name()) != names_.end() || names_.size() == roles_in_a_row_max) {
      fail(of, str_cat("its source_profile leads in a circle, or through more than ", roles_in_a_row_max, " roles"));
    }
    names_.push_back(of.name());
    if (!of.value("mfa_serial").empty()) {
      throw error(errc::unsupported,
                  str_cat("the role of the profile '", of.name(),
                          "' wants a one-time code (mfa_serial), which leat does not ask for; give a profile "
                          "`credential_process = aws configure export-credentials --profile ",
                          of.name(), "`"));
    }
    role_settings settings{.role_arn = of.value("role_arn"),
                           .role_session_name = of.value("role_session_name"),
                           .external_id = of.value("external_id"),
                           .duration_s = duration_of(of),
                           .region = of.value("region")};
    if (settings.region.empty()) settings.region = region;
    if (!is_region(settings.region))
      fail(of, str_cat("its region '", settings.region, "' is no name of one, as us-east-1 is"));
    return keys_by_role(settings, source_of(of, settings.region), options_, from_);
  }

 private:
  [[noreturn]] static void fail(const profile& of, const std::string& why) {
    throw error(errc::usage, str_cat("the profile '", of.name(), "': ", why));
  }

  static std::uint32_t duration_of(const profile& of) {
    const std::string text = of.value("duration_seconds");
    if (text.empty()) return 0;
    std::uint32_t seconds = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (failure != std::errc() || end != text.data() + text.size() || seconds < 900 || seconds > 43'200)
      fail(of, "its duration_seconds is to be a number from 900 to 43200");
    return seconds;
  }

  // What stands in a header of a request.
  static role_source checked(const profile& of, role_source source) {
    if (const std::string_view why = what_is_wrong_with(source.keys); !why.empty())
      fail(of, str_cat("its keys, of ", source.from, ", will not do: ", why));
    return source;
  }

  // A profile that has keys and a role provides its keys, as with AWS's tools; one that names itself does.
  role_source source_of(const profile& of, const std::string& region) {
    if (const std::string way = of.value("credential_source"); of.value("source_profile").empty())
      return source_by(of, way);
    const profile source = files_.named(of.value("source_profile"));
    const std::string who = str_cat("the profile '", source.name(), "'");
    if (!source.is_there()) {
      fail(of, str_cat("its source_profile '", source.name(), "' is neither in ", files_.credentials_path(), " nor in ",
                       files_.config_path()));
    }
    if (!source.value("aws_access_key_id").empty()) {
      return checked(of, {.keys = {source.value("aws_access_key_id"), source.value("aws_secret_access_key"),
                                   source.value("aws_session_token")},
                          .from = who});
    }
    if (source.takes_role()) return {.renewed = role_of(source, region), .from = who};
    provider_settings settings;
    settings.role_arn = source.value("role_arn");
    settings.role_session_name = source.value("role_session_name");
    settings.web_identity_token_file = source.value("web_identity_token_file");
    settings.credential_process = source.value("credential_process");
    settings.region = region;
    if (settings.web_identity_token_file.empty() && settings.credential_process.empty())
      fail(of, str_cat("its source_profile '", source.name(), "' has no keys"));
    std::string ignored;  // these two provide or throw
    return {.renewed = find_temporary_credentials(settings, options_, from_, ignored), .from = who};
  }

  role_source source_by(const profile& of, const std::string& way) {
    std::string why;
    role_source found{.from = str_cat("the credential_source ", way)};
    if (way == "Environment") {
      found.keys = {from_("AWS_ACCESS_KEY_ID"), from_("AWS_SECRET_ACCESS_KEY"), from_("AWS_SESSION_TOKEN")};
      if (found.keys.empty()) fail(of, "its credential_source is Environment, and AWS_ACCESS_KEY_ID is not set");
      return checked(of, std::move(found));
    } else if (way == "EcsContainer") {
      found.renewed = keys_by_container(options_, from_);
      if (!found.renewed) fail(of, "its credential_source is EcsContainer, and the environment names no agent");
    } else if (way == "Ec2InstanceMetadata") {
      found.renewed = keys_by_machine(options_, from_, why);
      if (!found.renewed) {
        fail(of, str_cat("its credential_source is Ec2InstanceMetadata, and the machine provides none",
                         why.empty() ? "" : str_cat(" (", why, ")")));
      }
    } else {
      fail(of, "its credential_source is to be Environment, EcsContainer or Ec2InstanceMetadata");
    }
    return found;
  }

  const profile_files& files_;
  const remote_options& options_;
  const environment& from_;
  std::vector<std::string> names_;
};

}  // namespace

profile::profile(std::string name, section credentials, section config)
    : name_(std::move(name)), credentials_(std::move(credentials)), config_(std::move(config)) {}

std::string profile::value(std::string_view key) const {
  for (const section* const each : {&credentials_, &config_}) {
    if (const auto found = each->find(key); found != each->end() && !found->second.empty()) return found->second;
  }
  return {};
}

bool profile::takes_role() const {
  return !value("role_arn").empty() && (!value("source_profile").empty() || !value("credential_source").empty());
}

profile_files::profile_files(const environment& from)
    : credentials_path_(from("AWS_SHARED_CREDENTIALS_FILE")), config_path_(from("AWS_CONFIG_FILE")) {
  const std::string home = str_cat(from("HOME"), "/.aws/");
  if (credentials_path_.empty()) credentials_path_ = home + "credentials";
  if (config_path_.empty()) config_path_ = home + "config";
}

profile profile_files::named(const std::string& name) const {
  return {name, section_of(credentials_path_, name), section_of(config_path_, name)};
}

std::shared_ptr<renewed_credentials> keys_of_role(const profile& of, const profile_files& files,
                                                  const std::string& region, const remote_options& options,
                                                  const environment& from) {
  return role_chain(files, options, from).role_of(of, region);
}

}  // namespace leat::io
