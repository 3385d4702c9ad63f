// TLS to a server, by OpenSSL's own calls of the socket: what comes is received by several records at a time and decrypted where it was
// received, where Asio's stream takes a record in two more copies.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <openssl/bio.h>
#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat::io {

/// What all sessions of a client have in common: TLS 1.2 at least, and who is trusted.
class tls_context {
 public:
  ///   throws   as authorities_with()
  explicit tls_context(const std::string& ca_file);

  [[nodiscard]] SSL_CTX* get() const noexcept { return made_.get(); }

 private:
  struct freed {
    void operator()(SSL_CTX* made) const noexcept;
  };
  std::unique_ptr<SSL_CTX, freed> made_;
};

/// One connection's. Thread: one.
class tls_session {
 public:
  using error_code = boost::system::error_code;
  using socket_type = boost::asio::ip::tcp::socket;
  using outcome = std::pair<error_code, std::size_t>;

  /// Bytes that may have been received, and not been asked for yet.
  static constexpr std::size_t read_ahead_bytes = std::size_t{64} << 10;

  ///   socket   connected; outlives this, and may be closed at any time: what waits ends then
  tls_session(const tls_context& context, socket_type& socket);
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  /// Whom the certificate has to name. False: TLS does not take such a name.
  ///   is_name   else a number
  [[nodiscard]] bool expect(const std::string& host, bool is_name);
  [[nodiscard]] boost::asio::awaitable<error_code> shake_hands();
  /// After a handshake: why the certificate is not trusted; null where it is.
  [[nodiscard]] const char* mistrust() const noexcept;
  /// Whether a failure is that the other side answers without TLS.
  [[nodiscard]] static bool is_without_tls(const error_code& failure) noexcept;
  /// Whether it is TLS' own, and not the connection's.
  [[nodiscard]] static bool is_of_tls(const error_code& failure) noexcept;

  /// Some of what comes, as much as is there. A connection that the other side has closed is asio::error::eof.
  ///   is_answered   there may be bytes already
  [[nodiscard]] boost::asio::awaitable<outcome> read_some(boost::asio::mutable_buffer into, bool is_answered);
  [[nodiscard]] boost::asio::awaitable<error_code> write(std::string_view all);

 private:
  struct freed {
    void operator()(SSL* made) const noexcept;
  };
  /// What the BIO knows of the socket.
  struct wire {
    socket_type* socket = nullptr;
    int failure = 0;
    bool has_ended = false;
  };
  enum class wants : unsigned char { nothing, to_read, to_write };

  static int receive(BIO* bio, char* into, int bytes);
  static int send(BIO* bio, const char* from, int bytes);
  static long control(BIO* bio, int what, long number, void* more);
  static const BIO_METHOD* methods();

  /// Of a call that has failed.
  [[nodiscard]] wants what_is_missing(int result, error_code& failure);
  [[nodiscard]] boost::asio::awaitable<error_code> wait_for(wants which);

  wire wire_;
  std::unique_ptr<SSL, freed> made_;
  error_code later_;  // found behind bytes that were handed on
};

}  // namespace leat::io
