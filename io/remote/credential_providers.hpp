// Who provides keys of a store: a role by a web identity, a program, the agent of a container, the machine.
#pragma once

#include "io/remote/renewed_credentials.hpp"
#include "io/remote/s3.hpp"

#include <leat/remote.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace leat::io {

/// What a profile or the environment says.
///   role_arn, web_identity_token_file   both of them: AssumeRoleWithWebIdentity, as EKS has it
///   credential_process                  a command line that prints keys, within program_patience
struct provider_settings {
  std::string role_arn;
  std::string role_session_name;
  std::string web_identity_token_file;
  std::string credential_process;
  std::string region;
  std::chrono::milliseconds program_patience = std::chrono::minutes(1);
};

/// A role that is asked for with other keys (AssumeRole).
///   role_session_name   empty: leat
///   external_id         empty: none
///   duration_s          0: STS says it
struct role_settings {
  std::string role_arn;
  std::string role_session_name;
  std::string external_id;
  std::uint32_t duration_s = 0;
  std::string region;
};
/// Those keys.
///   keys   where `renewed` is null
///   from   in words: "the profile 'base'"
struct role_source {
  access_keys keys = {};
  std::shared_ptr<renewed_credentials> renewed = nullptr;
  std::string from;
};

/// Where a role is asked for, in a region of AWS.
[[nodiscard]] std::string sts_endpoint(const std::string& region);

/// The first of these that there is: the role, the program, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, the machine's metadata
/// (IMDSv2; not where AWS_EC2_METADATA_DISABLED is true). They are shared by all of this process that ask for the same ones. Blocks.
///   returns   null where none provides any: `why` says what was asked
///   throws    error{errc::usage} an address that keys may not go to; error{errc::io}, error{errc::permission} a provider that fails
[[nodiscard]] std::shared_ptr<renewed_credentials> find_temporary_credentials(const provider_settings& settings,
                                                                              const remote_options& options,
                                                                              const environment& from,
                                                                              std::string& why);

// Of one kind of provider, shared likewise, and throwing likewise. Null: there is none.
[[nodiscard]] std::shared_ptr<renewed_credentials> keys_by_role(const role_settings& settings,
                                                                const role_source& source,
                                                                const remote_options& options, const environment& from);
[[nodiscard]] std::shared_ptr<renewed_credentials> keys_by_container(const remote_options& options,
                                                                     const environment& from);
[[nodiscard]] std::shared_ptr<renewed_credentials> keys_by_machine(const remote_options& options,
                                                                   const environment& from, std::string& why);

}  // namespace leat::io
