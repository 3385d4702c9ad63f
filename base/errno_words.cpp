#include "base/errno_words.hpp"

#include "base/errno_table.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace leat {

std::string errno_name(int code) {
#ifdef __GLIBC__
  if (const char* const name = ::strerrorname_np(code)) return name;
#endif
  return str_cat("errno ", code);
}

errc kind_of(int failure) noexcept { return meaning_of(failure).kind; }

std::string errno_words(int failure) {
  const errno_meaning& known = meaning_of(failure);
  std::string text =
      str_cat(known.what != nullptr ? known.what : std::strerror(failure), " (", errno_name(failure), ")");
  if (*known.remedy != '\0') str_append(text, "; ", known.remedy);
  if (known.option != option_id::none) text += spelled(known.option, known.value);
  return text;
}

error explain_write(std::string_view what, int failure, const write_remedies& remedies) {
  const auto because = [&](errc kind, std::string_view remedy) {
    return error(kind, str_cat(what, ": ", std::generic_category().message(failure), "; ", remedy));
  };
  switch (failure) {
    case ENOSPC:
    case EDQUOT:
      return because(errc::limit, remedies.no_room);
    case EFBIG:
      return because(errc::limit, remedies.too_large);
    case ENOENT:
    case ENOTDIR:
      return because(errc::not_found, remedies.no_folder);
    case EACCES:
    case EPERM:
    case EROFS:
      return because(errc::permission, remedies.not_allowed);
    case EISDIR:
    case EEXIST:
    case ELOOP:
      return because(errc::usage, remedies.taken);
    case EWOULDBLOCK:
      return because(errc::usage, remedies.busy);
    default:
      return because(errc::io, remedies.other);
  }
}

}  // namespace leat
