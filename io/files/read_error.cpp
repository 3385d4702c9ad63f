#include "io/files/read_error.hpp"

#include "base/errno_table.hpp"
#include "base/errno_words.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <string>
#include <string_view>

namespace leat::io {
namespace {

error compose(int failure, const std::string& where) {
  const errno_meaning& known = meaning_of(failure);
  return {known.kind, str_cat(where, ": ", errno_words(failure)), known.option};
}

}  // namespace

error explain_read(const failed_read& read) {
  const char* const remedy = meaning_of(read.failure).remedy;
  if (read.failure == ENODATA) {
    return {errc::io, str_cat(read.path, ": the file ends at ", read.offset + read.data_bytes, ", and bytes up to ",
                              read.offset + read.bytes, " were expected (ENODATA); ", remedy)};
  }
  if (read.failure == EFBIG) {
    return {errc::io, str_cat(read.path, ": the file goes on after ", read.offset + read.bytes,
                              " bytes, where it was expected to end (EFBIG); ", remedy)};
  }
  const std::string where = str_cat(read.path, " at offset ", read.offset, ", ", read.bytes, " bytes");
  if (read.failure == ETIMEDOUT) {
    return {errc::io,
            str_cat(where, ": no answer in ", read.timeout_s,
                    " s (ETIMEDOUT); it may lie on a dead mount: check it with `ls`, or raise ",
                    spelled(option_id::read_timeout)),
            option_id::read_timeout};
  }
  return compose(read.failure, where);
}

error explain_open(int failure, std::string_view path) {
  if (failure == ETIMEDOUT) {
    return {errc::io, str_cat(path, ": no answer to opening it (ETIMEDOUT); it may lie on a dead mount")};
  }
  return compose(failure, std::string(path));
}

}  // namespace leat::io
