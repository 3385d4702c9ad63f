// What an installed leat owes its users: headers that compile without leat's own flags, and symbols that link.

#include <leat/error.hpp>
#include <leat/tensor.hpp>
#include <leat/version.hpp>

#include <cstdio>
#include <string>

int main() {
  const leat::dimensions shape{2, 3, 4};
  const leat::error missing(leat::errc::not_found, "no such file; check the path");
  const bool ok = leat::dense_strides(shape) == leat::dimensions{12, 4, 1} && missing.code() == leat::errc::not_found;
  std::printf("leat %d.%d.%d: %s\n", LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH, ok ? "ok" : "broken");
  return ok ? 0 : 1;
}
