// In the place of all else in this folder, in a build without OpenSSL.
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>

namespace leat::io {

std::shared_ptr<const source_description> describe_objects(std::span<const std::string> addresses,
                                                           const remote_options&) {
  throw error(errc::unsupported,
              str_cat(addresses.empty() ? std::string("an address") : redacted(addresses.front()),
                      ": this leat was built without objects at addresses; build it with -DLEAT_REMOTE=ON, for which "
                      "`apt-get install libssl-dev` brings OpenSSL, or copy the files and give their paths"));
}

}  // namespace leat::io
