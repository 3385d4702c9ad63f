#include "io/remote/name_answers.hpp"

#include "base/per_process.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace leat::io {
namespace {

namespace ip = boost::asio::ip;

ip::address address_of(const sockaddr& from) {
  if (from.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from, sizeof v4);
    return ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from, sizeof v6);
  ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return ip::address_v6(bytes, v6.sin6_scope_id);
}

name_answer by_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, &::freeaddrinfo);
  name_answer answer;
  if (failure != 0) {
    answer.what = name_answer::kind::failed;
    answer.why = ::gai_strerror(failure);
    answer.is_unknown = failure == EAI_NONAME || failure == EAI_NODATA;
    return answer;
  }
  answer.what = name_answer::kind::found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6)
      answer.addresses.push_back(address_of(*each->ai_addr));
  }
  return answer;
}

}  // namespace

name_answer name_answers::ask(const std::string& name, std::uint64_t now_ns) {
  known& all = *known_;
  const mutex_lock lock(all.guard);
  entry& now = all.names[name];
  if (now_ns >= now.good_until_ns && !now.is_asked) start_asking(known_, name, now, now_ns);
  // What failed a second ago is not known now.
  if (now.last.what == name_answer::kind::failed && now.is_asked) return {};
  if (all.dead_until_ns.empty()) return now.last;
  name_answer answer = now.last;
  answer.addresses.clear();
  for (const bool is_dead_wanted : {false, true}) {
    for (const ip::address& each : now.last.addresses) {
      const auto dead = all.dead_until_ns.find(each.to_string());
      const bool is_dead = dead != all.dead_until_ns.end() && now_ns < dead->second;
      if (is_dead == is_dead_wanted) answer.addresses.push_back(each);
    }
  }
  return answer;
}

void name_answers::start_asking(const std::shared_ptr<known>& all, const std::string& name, entry& of,
                                std::uint64_t now_ns) {
  of.is_asked = true;
  try {
    // Nobody joins it.
    std::thread([all, name, now_ns] { take(*all, name, all->how(name), now_ns); }).detach();
  } catch (const std::system_error& failure) {
    of.is_asked = false;
    of.good_until_ns = now_ns + failed_ns;
    if (of.last.what != name_answer::kind::found)
      of.last = {.what = name_answer::kind::failed, .addresses = {}, .why = failure.what()};
  }
}

//   now_ns   when it was asked for
void name_answers::take(known& all, const std::string& name, name_answer answer, std::uint64_t now_ns) {
  const mutex_lock lock(all.guard);
  entry& now = all.names[name];
  now.is_asked = false;
  const bool is_found = answer.what == name_answer::kind::found;
  now.good_until_ns = now_ns + (is_found ? found_ns : failed_ns);
  if (is_found || now.last.what != name_answer::kind::found) now.last = std::move(answer);
}

void name_answers::is_dead(const ip::address& where, std::uint64_t now_ns) {
  known& all = *known_;
  const mutex_lock lock(all.guard);
  all.dead_until_ns[where.to_string()] = now_ns + dead_ns;
}

void name_answers::forget(const std::string& name, std::uint64_t now_ns) {
  known& all = *known_;
  const mutex_lock lock(all.guard);
  const auto found = all.names.find(name);
  if (found != all.names.end()) {
    found->second.good_until_ns = std::min(found->second.good_until_ns, now_ns + failed_ns);
  }
}

name_answers& names_of_process() {
  static per_process<name_answers> all;
  return all.get([](const name_answers*) { return std::make_unique<name_answers>(by_system); });
}

std::vector<ip::address> in_turns(const std::vector<ip::address>& addresses) {
  std::vector<ip::address> families[2];
  for (const ip::address& each : addresses) {
    families[each.is_v6() == addresses.front().is_v6() ? 0 : 1].push_back(each);
  }
  std::vector<ip::address> all;
  for (std::size_t i = 0; i < std::max(families[0].size(), families[1].size()); ++i) {
    for (const std::vector<ip::address>& family : families) {
      if (i < family.size()) all.push_back(family[i]);
    }
  }
  return all;
}

}  // namespace leat::io
