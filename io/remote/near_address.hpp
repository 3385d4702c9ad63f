// Addresses that mean another machine to everybody who uses them.
#pragma once

#include <boost/asio/ip/address.hpp>

#include <cstdint>

namespace leat::io {

/// Of this machine, or of its link, where clouds answer what only the machine itself may ask: 127/8, 169.254/16, ::1, fe80::/10, fd00:ec2::/32
/// (Amazon's services of a machine and of a pod), IPv6 that stands for these, and no address at all, which leads here too.
[[nodiscard]] inline bool is_near(const boost::asio::ip::address& numbers) noexcept {
  if (numbers.is_v4()) {
    const std::uint32_t bits = numbers.to_v4().to_uint();
    return bits >> 24 == 127 || bits >> 24 == 0 || bits >> 16 == 0xA9FE;
  }
  const boost::asio::ip::address_v6 wide = numbers.to_v6();
  if (wide.is_loopback() || wide.is_unspecified() || wide.is_link_local()) return true;
  const auto bytes = wide.to_bytes();
  if (bytes[0] == 0xFD && bytes[1] == 0x00 && bytes[2] == 0x0E && bytes[3] == 0xC2) return true;
  return wide.is_v4_mapped() && is_near(boost::asio::ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]}));
}

}  // namespace leat::io
