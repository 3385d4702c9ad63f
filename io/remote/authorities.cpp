#include "io/remote/authorities.hpp"

#include "base/mutex.hpp"
#include "base/per_process.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

namespace leat::io {
namespace {

struct trust_stores {
  mutex reading;
  std::map<std::string, std::shared_ptr<X509_STORE>> by_name ABSL_GUARDED_BY(reading);
};

// Made after OpenSSL is ready, and so destroyed before it is no longer.
trust_stores& trust_stores_of_process() {
  OPENSSL_init_ssl(0, nullptr);
  static per_process<trust_stores> all;
  return all.get([](const trust_stores*) { return std::make_unique<trust_stores>(); });
}

// What is read: another text where a file was replaced or changed.
std::string name_of(const std::string& ca_file) {
  std::string name;
  for (const char* const variable : {"SSL_CERT_FILE", "SSL_CERT_DIR"}) {
    const char* const found = std::getenv(variable);
    str_append(name, found == nullptr ? "" : found, "\n");
  }
  str_append(name, ca_file);
  struct stat status{};
  if (!ca_file.empty() && ::stat(ca_file.c_str(), &status) == 0) {
    str_append(name, "\n", status.st_dev, " ", status.st_ino, " ", status.st_size, " ", status.st_mtim.tv_sec, " ",
               status.st_mtim.tv_nsec);
  }
  return name;
}

std::shared_ptr<X509_STORE> read(const std::string& ca_file) {
  const std::shared_ptr<X509_STORE> made(X509_STORE_new(), &X509_STORE_free);
  if (!made) throw error(errc::limit, "OpenSSL has no memory for the authorities of the system");
  X509_STORE_set_default_paths(made.get());
  ERR_clear_error();  // The system may have none.
  if (!ca_file.empty() && X509_STORE_load_file(made.get(), ca_file.c_str()) != 1) {
    const char* const why = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    throw error(errc::usage, str_cat(ca_file, ": no certificates in PEM can be read from it (",
                                     why == nullptr ? "no reason is given" : why,
                                     "); name the file of the authority that has signed the server's"));
  }
  return made;
}

}  // namespace

std::shared_ptr<X509_STORE> authorities_with(const std::string& ca_file) {
  constexpr std::size_t kept = 8;
  const std::string name = name_of(ca_file);
  trust_stores& all = trust_stores_of_process();
  const mutex_lock lock(all.reading);
  if (const auto found = all.by_name.find(name); found != all.by_name.end()) return found->second;
  std::shared_ptr<X509_STORE> made = read(ca_file);
  if (all.by_name.size() >= kept) all.by_name.clear();
  all.by_name.emplace(name, made);
  return made;
}

}  // namespace leat::io
