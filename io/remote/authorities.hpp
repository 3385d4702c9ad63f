// The authorities that servers' certificates are verified by: the system's, and those of a file.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

namespace leat::io {

/// To read them takes 30 to 50 ms of CPU, and opening a dataset makes several clients one after the other: a process reads them once, and anew
/// where the file, SSL_CERT_FILE or SSL_CERT_DIR is another one. Thread: any.
///   ca_file   in PEM; empty: the system's alone
///   throws    error{errc::usage} a file that cannot be read or has no certificate
[[nodiscard]] std::shared_ptr<X509_STORE> authorities_with(const std::string& ca_file);

}  // namespace leat::io
