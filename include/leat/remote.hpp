// Objects at addresses: https://host/train-{000..127}.tar, s3://bucket/train-{000..127}.tar.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace leat {

/// How objects at addresses are read: open_options::remote.
///   ca_file          certificates (PEM) that are trusted beside the system's; servers are always verified
///   allow_http       http:// too, where whoever is on the way may see and change what comes
///   connections_max  of each I/O thread that reads
///   silence_max      a server that sends nothing for so long is asked anew
///   patience         for one read with all its tries, and a second more for each 64 KiB of it
///   cache            a folder on a local drive: what was read once is read from there, by all processes that name it. Empty: LEAT_CACHE,
///                    and where that is not set there is none
///   cache_bytes      what all objects in it may take; 0: LEAT_CACHE_BYTES ("200GiB"). One of them is to be given
///   cache_block_bytes   what is fetched at once, a multiple of 4096: each I/O thread that reads has memory for 16 of them
/// Of s3://, where AWS's environment variables and profile files say nothing else:
///   endpoint         of a store that is not AWS: https://host:port
///   region           us-east-1
///   anonymous        requests are not signed: buckets that all may read
///   access_key_id, secret_access_key, session_token
///                    before all that the environment and the files say
///   profile          before the environment's keys
struct remote_options {
  std::string ca_file = {};
  bool allow_http = false;
  std::uint32_t connections_max = 256;
  std::chrono::milliseconds silence_max = std::chrono::seconds(30);
  std::chrono::milliseconds patience = std::chrono::minutes(2);
  std::string endpoint = {};
  std::string region = {};
  bool anonymous = false;
  std::string access_key_id = {};
  std::string secret_access_key = {};
  std::string session_token = {};
  std::string profile = {};
  std::string cache = {};
  std::uint64_t cache_bytes = 0;
  std::uint32_t cache_block_bytes = 4U << 20;
};

}  // namespace leat
