// Objects at addresses: https://host/train-{000..127}.tar, s3://bucket/train-{000..127}.tar.
#pragma once

#include <leat/compiler.hpp>
#include <leat/durations.hpp>

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// How objects at addresses are read: open_options::remote.
///   ca_file   a file of certificates (PEM) to trust, besides those of the system. Servers are always verified
///   allow_http       true: allow http:// as well. Others on the network may then read and change the data. Default:
///                    false
///   connections_max  the most connections of each I/O thread, and an eighth of `ulimit -n`. Default: 256
///   silence_max   repeat a request when the server has sent nothing for this long. Default: 30 s
///   patience   how long to wait for a store that gives no useful answer. Default: 2 minutes. The same time, and a
///              second more for each 64 KiB, is given to one read of a store that answers
///   cache   a folder on a local drive that keeps what was read, for all processes that name it. Empty (default): the
///           folder that LEAT_CACHE names in the environment; without it no cache
///   cache_bytes      the most bytes that the cache takes. 0 (default): LEAT_CACHE_BYTES ("200GiB"). A cache needs one
///                    of the two
///   cache_block_bytes   bytes that are fetched at once, a multiple of 4096. Default: 4 MiB. Each I/O thread has memory
///                       for 16 blocks
///   headers   "https://host Name: value": a header that is sent with each request to this server, and to no other
///             one
///   endpoint   https://host:port of an S3 store that is not AWS, or https://{bucket}.host if buckets are hosts. What
///              is not set here and below comes from AWS's environment variables and profiles
///   region   the region at AWS. Empty (default): as AWS's variables and profiles say, else us-east-1
///   anonymous        true: do not sign requests, for public buckets. Default: false
///   requester_pays   true: agree to pay for the reads, which such buckets require. Default: false
///   access_key_id   a key. It takes precedence over those of the environment and the files
///   secret_access_key   the secret of that key
///   session_token   the token of that key, if it is a temporary one
///   profile   a profile. It takes precedence over the keys of the environment
struct remote_options {
  std::string ca_file = {};
  bool allow_http = false;
  std::uint32_t connections_max = 256;
  std::chrono::milliseconds silence_max = std::chrono::seconds(30);
  std::chrono::milliseconds patience = std::chrono::minutes(2);
  std::string endpoint = {};
  std::string region = {};
  bool anonymous = false;
  bool requester_pays = false;
  std::string access_key_id = {};
  std::string secret_access_key = {};
  std::string session_token = {};
  std::string profile = {};
  std::vector<std::string> headers = {};
  std::string cache = {};
  std::uint64_t cache_bytes = 0;
  std::uint32_t cache_block_bytes = 4U << 20;
};

}  // namespace leat
#pragma GCC visibility pop
