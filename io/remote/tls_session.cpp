#include "io/remote/tls_session.hpp"

#include "io/remote/answers.hpp"
#include "io/remote/authorities.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace leat::io {
namespace {

namespace asio = boost::asio;

// Others have their turn then.
constexpr std::size_t read_at_once = std::size_t{256} << 10;

}  // namespace

void tls_context::freed::operator()(SSL_CTX* made) const noexcept { SSL_CTX_free(made); }
void tls_session::freed::operator()(SSL* made) const noexcept { SSL_free(made); }

tls_context::tls_context(const std::string& ca_file) : made_(SSL_CTX_new(TLS_client_method())) {
  if (made_ == nullptr) throw std::bad_alloc();
  SSL_CTX* const context = made_.get();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION);
  // A connection that is idle has no buffers; what is written may be gone on with from another place.
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, tls_session::read_ahead_bytes);
  SSL_CTX_set1_cert_store(context, authorities_with(ca_file).get());
}

// --- between OpenSSL and the socket -----------------------------------------------------------------------------------------

// Not OpenSSL's own, which would have a closed connection end the process (SIGPIPE) and wants the socket to be one that does not wait.
int tls_session::receive(BIO* bio, char* into, int bytes) {
  wire& of = *static_cast<wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(of.socket->native_handle(), into, static_cast<std::size_t>(bytes), MSG_DONTWAIT);
  of.failure = got < 0 ? errno : 0;
  of.has_ended = got == 0;
  if (got < 0 && (of.failure == EAGAIN || of.failure == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

int tls_session::send(BIO* bio, const char* from, int bytes) {
  wire& of = *static_cast<wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(of.socket->native_handle(), from, static_cast<std::size_t>(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
  of.failure = sent < 0 ? errno : 0;
  if (sent < 0 && (of.failure == EAGAIN || of.failure == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

long tls_session::control(BIO* bio, int what, long /*number*/, void* /*more*/) {
  if (what == BIO_CTRL_FLUSH) return 1;
  if (what == BIO_CTRL_EOF) return static_cast<wire*>(BIO_get_data(bio))->has_ended ? 1 : 0;
  return 0;
}

const BIO_METHOD* tls_session::methods() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* const all = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a socket of leat's");
    if (all == nullptr) throw std::bad_alloc();
    BIO_meth_set_read(all, &tls_session::receive);
    BIO_meth_set_write(all, &tls_session::send);
    BIO_meth_set_ctrl(all, &tls_session::control);
    return all;
  }();
  return made;
}

tls_session::tls_session(const tls_context& context, socket_type& socket)
    : wire_{.socket = &socket}, made_(SSL_new(context.get())) {
  BIO* const bio = made_ == nullptr ? nullptr : BIO_new(methods());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, &wire_);
  BIO_set_init(bio, 1);
  SSL_set_bio(made_.get(), bio, bio);
  SSL_set_connect_state(made_.get());
}

bool tls_session::expect(const std::string& host, bool is_name) {
  X509_VERIFY_PARAM* const checks = SSL_get0_param(made_.get());
  X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return is_name ? SSL_set_tlsext_host_name(made_.get(), host.c_str()) == 1 &&
                       X509_VERIFY_PARAM_set1_host(checks, host.data(), host.size()) == 1
                 : X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1;
}

const char* tls_session::mistrust() const noexcept {
  const long verdict = SSL_get_verify_result(made_.get());
  return verdict == X509_V_OK ? nullptr : X509_verify_cert_error_string(verdict);
}

bool tls_session::is_of_tls(const error_code& failure) noexcept {
  return failure.category() == asio::error::get_ssl_category();
}

bool tls_session::is_without_tls(const error_code& failure) noexcept {
  return is_of_tls(failure) &&
         ERR_GET_REASON(static_cast<unsigned long>(failure.value())) == SSL_R_WRONG_VERSION_NUMBER;
}

// --- calls --------------------------------------------------------------------------------------------------------------------

tls_session::wants tls_session::what_is_missing(int result, error_code& failure) {
  switch (SSL_get_error(made_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return wants::to_read;
    case SSL_ERROR_WANT_WRITE:
      return wants::to_write;
    case SSL_ERROR_ZERO_RETURN:
      failure = asio::error::eof;
      break;
    case SSL_ERROR_SYSCALL:
      failure = wire_.failure != 0 ? error_code(wire_.failure, boost::system::system_category())
                                   : error_code(asio::error::eof);
      break;
    default:
      // A connection that ends without TLS saying so.
      failure = wire_.has_ended ? error_code(asio::error::eof)
                                : error_code(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category());
      break;
  }
  return wants::nothing;
}

asio::awaitable<tls_session::error_code> tls_session::wait_for(wants which) {
  const auto [failure] = co_await wire_.socket->async_wait(
      which == wants::to_read ? socket_type::wait_read : socket_type::wait_write, answers);
  co_return failure;
}

asio::awaitable<tls_session::error_code> tls_session::shake_hands() {
  error_code failure;
  while (!failure) {
    ERR_clear_error();
    const int done = SSL_do_handshake(made_.get());
    if (done == 1) break;
    if (const wants missing = what_is_missing(done, failure); missing != wants::nothing) {
      failure = co_await wait_for(missing);
    }
  }
  co_return failure;
}

asio::awaitable<tls_session::outcome> tls_session::read_some(asio::mutable_buffer into, bool is_answered) {
  error_code failure = std::exchange(later_, {});
  std::size_t received = 0;
  wants missing = is_answered || SSL_has_pending(made_.get()) != 0 ? wants::nothing : wants::to_read;
  while (!failure && received == 0) {
    if (missing != wants::nothing) failure = co_await wait_for(missing);
    missing = wants::nothing;
    while (!failure && missing == wants::nothing && received < std::min(into.size(), read_at_once)) {
      ERR_clear_error();
      std::size_t some = 0;
      const int done =
          SSL_read_ex(made_.get(), static_cast<std::byte*>(into.data()) + received, into.size() - received, &some);
      received += some;
      if (done != 1) missing = what_is_missing(done, failure);
    }
  }
  if (received > 0) later_ = std::exchange(failure, {});
  co_return outcome(failure, received);
}

asio::awaitable<tls_session::error_code> tls_session::write(std::string_view all) {
  error_code failure;
  while (!failure && !all.empty()) {
    ERR_clear_error();
    std::size_t some = 0;
    const int done = SSL_write_ex(made_.get(), all.data(), all.size(), &some);
    all.remove_prefix(some);
    if (done == 1) continue;
    if (const wants missing = what_is_missing(done, failure); missing != wants::nothing) {
      failure = co_await wait_for(missing);
    }
  }
  co_return failure;
}

}  // namespace leat::io
