// In the place of leat::remote, where a program is linked without it, and in a build without OpenSSL. Weak: where both are, these are not
// taken.
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/store_probe.hpp"
#include "io/remote/web_objects.hpp"

#include <leat/error.hpp>

namespace leat::io {

namespace {

[[noreturn]] void refuse(const std::string& address) {
  throw error(
      errc::unsupported,
      str_cat(redacted(address),
              ": objects at addresses are not in this program; link leat::remote, or leat::leat, which has it. Where "
              "leat was built without it, build it with -DLEAT_REMOTE=ON, for which `apt-get install libssl-dev` "
              "brings OpenSSL. Or copy the files and give their paths"));
}

}  // namespace

[[gnu::weak]] std::shared_ptr<const source_description> describe_web_objects(
    std::span<const named_object* const> objects, const remote_options&, caching) {
  refuse(objects.empty() ? "an address" : objects.front()->address);
}

[[gnu::weak]] std::vector<named_object> match_s3_objects(const std::string& pattern, const remote_options&) {
  refuse(pattern);
}

[[gnu::weak]] std::vector<named_object> list_s3_objects(const std::string& folder, const remote_options&) {
  refuse(folder);
}

[[gnu::weak]] void ask_for_facts(std::span<named_object> objects, const remote_options&) {
  if (!objects.empty()) refuse(objects.front().address);
}

// There are no such sources.
[[gnu::weak]] void hand_on_facts(const source_description&, std::uint32_t, const source_description&, std::uint32_t) {}

[[gnu::weak]] store_facts look_at_store(const std::string& address, const remote_options&, const probe_effort&) {
  refuse(address);
}

}  // namespace leat::io
