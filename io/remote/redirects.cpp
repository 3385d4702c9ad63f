#include "io/remote/redirects.hpp"

#include "base/text.hpp"
#include "io/remote/near_address.hpp"

#include <boost/asio/ip/address.hpp>

#include <optional>
#include <utility>

namespace leat::io {
namespace {

constexpr unsigned redirects_max = 5;
constexpr std::size_t moved_max = 65'536;

bool names_near(const address& to) {
  boost::system::error_code failure;
  const boost::asio::ip::address numbers = boost::asio::ip::make_address(to.host, failure);
  return !failure && is_near(numbers);
}

}  // namespace

void redirects::set_out(route& way) const {
  if (way.redirects != 0) return;
  const auto moved = moved_.find(way.from);
  way.is_remembered = moved != moved_.end();
  if (way.is_remembered) way.at = moved->second;
}

std::string redirects::follow(route& way, const std::string& location, const std::string& said) const {
  const std::optional<address> next = io::follow(way.at, location);
  if (!next || (!next->tls && !allow_http_)) return str_cat(said, ", to an address that is not followed");
  way.came_from_near = near_.contains(way.at.host_header());
  if (!way.came_from_near && (names_near(*next) || near_.contains(next->host_header())))
    return str_cat(said, ": ", leads_near(*next));
  if (++way.redirects > redirects_max) return str_cat("more than ", redirects_max, " redirects");
  way.at = *next;
  return {};
}

void redirects::remember(const route& way) {
  if (way.redirects > 0 && moved_.size() < moved_max) moved_.insert_or_assign(way.from, way.at);
}

void redirects::from_the_start(route& way) {
  if (way.is_direct()) return;
  moved_.erase(way.from);
  way.redirects = 0;
  way.is_remembered = false;
  way.at = *way.from;
}

bool redirects::begins_anew(route& way) {
  if (way.is_direct() || std::exchange(way.was_begun_anew, true)) return false;
  from_the_start(way);
  return true;
}

bool redirects::may_be_near(const route& way) const {
  if (way.redirects > 0) return way.came_from_near;
  return !way.is_remembered || near_.contains(way.at.host_header());
}

// A server elsewhere that leads to this machine, to its link or to what a cloud answers there would have us ask what it cannot ask itself.
std::string redirects::leads_near(const address& to) {
  return str_cat("a redirect leads to ", to.host_header(),
                 ", of this machine or its link, which is not followed from elsewhere; if it is meant, give that "
                 "address");
}

}  // namespace leat::io
