// Profiles, as AWS's tools keep them in ~/.aws/credentials and ~/.aws/config, and the keys of those that take a role.
#pragma once

#include "io/remote/s3.hpp"

#include <leat/remote.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace leat::io {

class renewed_credentials;

/// What both files say of one name; nothing of a name that they do not have.
class profile {
 public:
  using section = std::map<std::string, std::string, std::less<>>;
  profile(std::string name, section credentials, section config);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_there() const noexcept { return !credentials_.empty() || !config_.empty(); }
  /// Of the credentials, else of the config; empty where neither has it.
  [[nodiscard]] std::string value(std::string_view key) const;
  [[nodiscard]] bool is_in_credentials(std::string_view key) const { return credentials_.contains(key); }
  /// A role that is taken with other keys: role_arn, and source_profile or credential_source.
  [[nodiscard]] bool takes_role() const;

 private:
  std::string name_;
  section credentials_;
  section config_;
};

/// Where AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say, or in ~/.aws.
class profile_files {
 public:
  explicit profile_files(const environment& from);

  [[nodiscard]] const std::string& credentials_path() const noexcept { return credentials_path_; }
  [[nodiscard]] const std::string& config_path() const noexcept { return config_path_; }
  [[nodiscard]] profile named(const std::string& name) const;

 private:
  std::string credentials_path_;
  std::string config_path_;
};

/// Keys of a role (AssumeRole of STS), by those of the profile's source_profile, which may take a role itself, or of what its
/// credential_source says (Environment, EcsContainer, Ec2InstanceMetadata). Blocks.
///   of        takes_role()
///   region    of STS, where the profile says none
///   throws    error{errc::usage}: a source that is not there or has no keys, a circle or more than 5 roles in a row, a duration that is
///             none; error{errc::unsupported}: a role that wants a one-time code (mfa_serial); else as find_temporary_credentials()
[[nodiscard]] std::shared_ptr<renewed_credentials> keys_of_role(const profile& of, const profile_files& files,
                                                                const std::string& region,
                                                                const remote_options& options, const environment& from);

}  // namespace leat::io
