// In the place of all else in this folder, in a build without OpenSSL.
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/store_probe.hpp"
#include "io/remote/web_objects.hpp"

#include <leat/error.hpp>

namespace leat::io {

namespace {

[[noreturn]] void refuse(const std::string& address) {
  throw error(errc::unsupported,
              str_cat(redacted(address),
                      ": this leat was built without objects at addresses; build it with -DLEAT_REMOTE=ON, for which "
                      "`apt-get install libssl-dev` brings OpenSSL, or copy the files and give their paths"));
}

}  // namespace

std::shared_ptr<const source_description> describe_web_objects(std::span<const named_object* const> objects,
                                                               const remote_options&, caching) {
  refuse(objects.empty() ? "an address" : objects.front()->address);
}

std::vector<named_object> match_s3_objects(const std::string& pattern, const remote_options&) { refuse(pattern); }

std::vector<named_object> list_s3_objects(const std::string& folder, const remote_options&) { refuse(folder); }

void ask_for_facts(std::span<named_object> objects, const remote_options&) {
  if (!objects.empty()) refuse(objects.front().address);
}

// There are no such sources.
void hand_on_facts(const source_description&, std::uint32_t, const source_description&, std::uint32_t) {}

store_facts look_at_store(const std::string& address, const remote_options&, const probe_effort&) { refuse(address); }

}  // namespace leat::io
