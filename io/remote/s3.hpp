// s3://bucket/key at AWS, and at whoever speaks the same: where it lies and who may read it.
#pragma once

#include "io/remote/address.hpp"
#include "io/remote/sigv4.hpp"

#include <leat/remote.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leat::io {

class renewed_credentials;

/// How a store is read.
///   keys       empty: without a signature
///   renewed       keys that are renewed while they are used; else null. `keys` are the first of them
///   endpoint   of a store that is not AWS
///   has_bucket_in_host   "https://{bucket}.s3.example.org": the endpoint is without this mark
///   keys_from  where the keys were found, in words; never their values
///   service    that requests are signed for
///   ca_file    certificates that are trusted too, by AWS_CA_BUNDLE or the profile's ca_bundle; may be empty
struct s3_access {
  access_keys keys;
  std::string region;
  std::optional<address> endpoint;
  bool has_bucket_in_host = false;
  std::shared_ptr<renewed_credentials> renewed = nullptr;
  std::string keys_from = {};
  std::string service = "s3";
  std::string ca_file = {};
};

/// An environment variable; empty where it is not set. Tests have an environment of their own.
using environment = std::function<std::string(const char* name)>;
[[nodiscard]] environment of_process();

/// Whether it may be a region's name: small letters, digits and hyphens.
[[nodiscard]] bool is_region(std::string_view text);
/// Why requests cannot be signed with them, with what to do; empty where they can.
[[nodiscard]] std::string_view what_is_wrong_with(const access_keys& keys);

/// Options come first, then the environment (AWS_ACCESS_KEY_ID and its kin, AWS_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), then the profile
/// (AWS_PROFILE, "default") in ~/.aws/credentials and ~/.aws/config, or where AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE say, its role
/// (keys_of_role()) before its keys; then who provides keys, as find_temporary_credentials() has it, a role of the environment before the profile. Blocks
/// while they are asked for.
///   throws   error{errc::usage}: no keys, with where they were looked for; an endpoint that is no address, or of http:// that was not
///            allowed; error{errc::unsupported}: a profile whose keys come from elsewhere (sso_*); and as
///            find_temporary_credentials() and keys_of_role()
[[nodiscard]] s3_access find_s3_access(const remote_options& options, const environment& from = of_process());

struct s3_name {
  std::string bucket;
  std::string key;
};
///   throws   error{errc::usage}: not s3://bucket/key
[[nodiscard]] s3_name parse_s3_name(std::string_view text);

/// Where the object lies: at AWS, and where the endpoint has {bucket}, in the bucket's own host, else in a path below the endpoint. Shown as s3://bucket/key.
[[nodiscard]] address address_of(const s3_name& name, const s3_access& at);

}  // namespace leat::io
