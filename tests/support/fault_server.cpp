#include "tests/support/fault_server.hpp"

#include "base/mutex.hpp"
#include "base/text.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

namespace leat::testing {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;

constexpr auto answers = asio::as_tuple(asio::use_awaitable);

struct key_and_certificate {
  std::string key;
  std::string certificate;
};

std::string text_of(BIO* out) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

// For localhost, store.test and 127.0.0.1, from yesterday to tomorrow.
key_and_certificate make_certificate() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  if (!key || !made) throw std::runtime_error("no certificate can be made");
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -86'400);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 86'400);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("leat fault server"), -1,
                             -1, 0);
  X509_set_issuer_name(made.get(), name);
  for (const auto& [number, value] : {std::pair(NID_basic_constraints, "critical,CA:TRUE"),
                                      std::pair(NID_subject_alt_name, "DNS:localhost,DNS:store.test,IP:127.0.0.1")}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, number, value);
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(made.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, decltype(&BIO_free)> key_text(BIO_new(BIO_s_mem()), &BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  PEM_write_bio_X509(text.get(), made.get());
  return {text_of(key_text.get()), text_of(text.get())};
}

// Each byte of it.
std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_byte = text[i] == '%' && text.size() - i >= 3;
    out += is_byte ? static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)) : text[i];
    if (is_byte) i += 2;
  }
  return out;
}

}  // namespace

std::string served_request::value(std::string_view name) const {
  const std::size_t begin = header.find(str_cat("\r\n", name, ": "));
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + name.size() + 4;
  return header.substr(from, header.find("\r\n", from) - from);
}

class fault_server::impl {
 public:
  impl(transport how, std::uint16_t port, const std::map<std::string, std::string>& objects) : how_(how) {
    for (const auto& [name, content] : objects) put(name, content);
    if (how == transport::tls) {
      static const key_and_certificate made = make_certificate();
      certificate_ = made.certificate;
      tls_.use_certificate(asio::buffer(made.certificate), ssl::context::pem);
      tls_.use_private_key(asio::buffer(made.key), ssl::context::pem);
    }
    listener_ = std::make_unique<tcp::acceptor>(*context_, tcp::endpoint(asio::ip::address_v4::loopback(), port));
    port_ = listener_->local_endpoint().port();
    asio::co_spawn(*context_, accept(), asio::detached);
    thread_ = std::thread([this] { context_->run(); });
  }
  ~impl() {
    context_->stop();
    thread_.join();
    listener_.reset();
    context_.reset();
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  std::string put(const std::string& name, std::string content) {
    const mutex_lock lock(mutex_);
    std::string tag = str_cat("\"tag-", ++tags_, "\"");
    objects_["/" + name] = {std::move(content), tag};
    return tag;
  }
  void set_listing(listing_manner how) {
    const mutex_lock lock(mutex_);
    listing_ = how;
  }
  void set_rule(rule what) {
    const mutex_lock lock(mutex_);
    rule_ = std::move(what);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t requests() const {
    const mutex_lock lock(mutex_);
    return requests_;
  }
  [[nodiscard]] std::uint64_t connections() const {
    const mutex_lock lock(mutex_);
    return connections_;
  }
  [[nodiscard]] std::string all_headers() const {
    const mutex_lock lock(mutex_);
    return headers_;
  }
  [[nodiscard]] std::string address(const std::string& name) const {
    return how_ == transport::tls ? str_cat("https://localhost:", port_, "/", name)
                                  : str_cat("http://127.0.0.1:", port_, "/", name);
  }
  [[nodiscard]] const std::string& certificate() const { return certificate_; }

 private:
  struct object {
    std::string content;
    std::string tag;
  };
  struct answer {
    std::string bytes;
    bool ends = false;    // the connection, after these bytes
    bool stalls = false;  // nothing comes after these
    std::chrono::milliseconds wait{0};
    std::size_t drips_from = std::string::npos;  // these bytes come one by one
  };

  asio::awaitable<void> accept() {
    for (;;) {
      auto [failure, socket] = co_await listener_->async_accept(answers);
      if (failure) co_return;
      {
        const mutex_lock lock(mutex_);
        ++connections_;
      }
      asio::co_spawn(*context_, serve(std::move(socket)), asio::detached);
    }
  }
  asio::awaitable<void> serve(tcp::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (how_ == transport::plain) {
      co_await talk(socket);
      co_return;
    }
    ssl::stream<tcp::socket> stream(std::move(socket), tls_);
    const auto [failure] = co_await stream.async_handshake(ssl::stream_base::server, answers);
    if (!failure) co_await talk(stream);
  }
  template <class Stream>
  asio::awaitable<void> talk(Stream& stream) {
    std::string received;
    for (;;) {
      std::size_t end = received.find("\r\n\r\n");
      while (end == std::string::npos) {
        char some[4096];
        const auto [failure, bytes] = co_await stream.async_read_some(asio::buffer(some), answers);
        if (failure) co_return;
        received.append(some, bytes);
        end = received.find("\r\n\r\n");
      }
      const answer sent = answer_to(received.substr(0, end + 2));
      received.erase(0, end + 4);
      asio::steady_timer timer(*context_);
      const auto wait = [&] {
        timer.expires_after(sent.wait);
        return timer.async_wait(answers);
      };
      if (sent.wait.count() != 0 && sent.drips_from == std::string::npos) co_await wait();
      const std::size_t at_once = std::min(sent.bytes.size(), sent.drips_from);
      auto [failure, bytes] = co_await asio::async_write(stream, asio::buffer(sent.bytes, at_once), answers);
      for (std::size_t at = at_once; !failure && at < sent.bytes.size(); ++at) {
        co_await wait();
        std::tie(failure, bytes) = co_await asio::async_write(stream, asio::buffer(&sent.bytes[at], 1), answers);
      }
      if (failure || sent.ends) co_return;
      if (sent.stalls) {
        char some[1];
        co_await stream.async_read_some(asio::buffer(some), answers);
        co_return;
      }
    }
  }

  answer answer_to(std::string header) {
    const mutex_lock lock(mutex_);
    served_request asked;
    asked.number = requests_++;
    const std::size_t begin = header.find(' ') + 1;
    asked.target = header.substr(begin, header.find(' ', begin) - begin);
    headers_ += header;
    asked.header = std::move(header);
    const http_fault plan = rule_ ? rule_(asked) : http_fault();
    using enum http_fault::kind;
    if (plan.what == hang_up) return {"", true};
    if (plan.what == no_http) return {"SSH-2.0-OpenSSH_9.2\r\n\r\n", true};
    if (plan.what == status) {
      const bool is_chunked = plan.headers.find("chunked") != std::string::npos;
      return {str_cat("HTTP/1.1 ", plan.status, " As Told\r\n",
                      is_chunked ? "" : str_cat("Content-Length: ", plan.body.size(), "\r\n"), plan.headers, "\r\n",
                      plan.body)};
    }
    std::string extra = "Server: faults\r\n";
    if (plan.what == long_header) extra = str_cat("X-Long: ", std::string(std::size_t{65} << 10, 'x'), "\r\n");
    if (plan.what == many_lines) {
      for (int i = 0; i < 200; ++i) extra += str_cat("X-Line-", i, ": 1\r\n");
    }
    if (plan.what == compressed) extra = "Content-Encoding: gzip\r\n";
    if (asked.target.find("&list-type=2") != std::string::npos) {
      const std::string page = page_of(asked.target);
      answer made{str_cat("HTTP/1.1 200 OK\r\nContent-Length: ", page.size(), "\r\n\r\n", page)};
      if (plan.what == late) made.wait = plan.wait;
      return made;
    }
    auto found = objects_.find(asked.target);
    if (found == objects_.end()) found = objects_.find(asked.target.substr(0, asked.target.find('?')));
    if (found == objects_.end()) found = objects_.find(decoded(asked.target.substr(0, asked.target.find('?'))));
    if (found == objects_.end()) return {"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"};
    const auto& [content, tag] = found->second;
    if (const std::string wanted = asked.value("If-Match"); !wanted.empty() && wanted != tag) {
      return {"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n"};
    }
    extra +=
        plan.what == untagged ? plan.headers : str_cat("ETag: ", tag, "\r\n", plan.what == cut ? plan.headers : "");
    if (plan.what == whole)
      return {str_cat("HTTP/1.1 200 OK\r\nContent-Length: ", content.size(), "\r\n", extra, "\r\n", content)};
    const std::string range = asked.value("Range");
    const std::size_t dash = range.find('-');
    std::uint64_t first = range.empty() ? 0 : std::stoull(range.substr(6, dash - 6));
    std::uint64_t last = range.empty() ? content.size() : std::stoull(range.substr(dash + 1));
    if (!range.empty() && first >= content.size()) {
      return {str_cat("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nContent-Range: bytes */",
                      content.size(), "\r\n", extra, "\r\n")};
    }
    last = std::min<std::uint64_t>(last, content.size() - std::min<std::size_t>(content.size(), 1));
    if (plan.what == wrong_range && first > 0) --first, --last;
    if (plan.what == too_many && last + 1 < content.size()) ++last;
    std::string body = content.substr(first, last - first + 1);
    answer made;
    made.bytes = range.empty() ? str_cat("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n", extra, "\r\n")
                               : str_cat("HTTP/1.1 206 Partial Content\r\nContent-Length: ", body.size(),
                                         "\r\nContent-Range: bytes ", first, "-", last, "/", content.size(), "\r\n",
                                         extra, "\r\n");
    if (plan.what == early) {
      made.bytes.insert(0, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    }
    if (plan.what == cut || plan.what == stall) {
      body.resize(std::min(body.size(), plan.bytes));
      made.ends = plan.what == cut;
      made.stalls = plan.what == stall;
    }
    if (plan.what == late || plan.what == dripping) made.wait = plan.wait;
    if (plan.what == dripping) made.drips_from = made.bytes.size();
    made.bytes += body;
    return made;
  }

  // Of a bucket's objects, a few at a time, and with a delimiter folders for those that lie in them. The token is the number of the names
  // and folders that came before.
  [[nodiscard]] std::string page_of(const std::string& target) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto value = [&](std::string_view name) {
      std::size_t begin = target.find(str_cat("?", name));
      if (begin == std::string::npos) begin = target.find(str_cat("&", name));
      if (begin == std::string::npos) return std::string();
      ++begin;
      return decoded(
          std::string_view(target).substr(begin + name.size(), target.find('&', begin) - begin - name.size()));
    };
    const std::string bucket = target.substr(0, target.find('?'));
    const std::string prefix = str_cat(bucket, value("prefix="));
    const std::string delimiter = listing_.knows_delimiter ? value("delimiter=") : "";
    const std::string token = value("continuation-token=");
    const std::size_t before = token.empty() ? 0 : std::stoull(token);
    std::string page;
    std::size_t number = 0;
    std::string last_folder;
    for (auto each = objects_.lower_bound(prefix); each != objects_.end() && each->first.starts_with(prefix); ++each) {
      const std::string_view name = each->first;
      const std::size_t end = delimiter.empty() ? std::string::npos : name.find(delimiter, prefix.size());
      const std::string_view folder = end == std::string::npos ? "" : name.substr(0, end + delimiter.size());
      if (!folder.empty() && folder == last_folder) continue;
      last_folder = folder;
      if (number++ < before) continue;
      if (number > before + listing_.names_a_page) break;
      if (!folder.empty()) {
        str_append(page, "<CommonPrefixes><Prefix>", encoded(folder.substr(bucket.size())),
                   "</Prefix></CommonPrefixes>");
        continue;
      }
      str_append(page, "<Contents><Key>", encoded(name.substr(bucket.size())), "</Key><Size>",
                 each->second.content.size(), "</Size><ETag>", each->second.tag, "</ETag></Contents>");
    }
    const bool goes_on = number > before + listing_.names_a_page;
    return str_cat(
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>", goes_on ? "true" : "false", "</IsTruncated>",
        goes_on ? str_cat("<NextContinuationToken>", before + listing_.names_a_page, "</NextContinuationToken>") : "",
        page, "</ListBucketResult>");
  }

  const transport how_;
  ssl::context tls_{ssl::context::tls_server};
  std::string certificate_;
  mutable mutex mutex_;
  std::map<std::string, object> objects_ ABSL_GUARDED_BY(mutex_);
  rule rule_ ABSL_GUARDED_BY(mutex_);
  std::string headers_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t connections_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t tags_ ABSL_GUARDED_BY(mutex_) = 0;
  listing_manner listing_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<asio::io_context> context_ = std::make_unique<asio::io_context>(1);
  std::unique_ptr<tcp::acceptor> listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

fault_server::fault_server(transport how, std::uint16_t port, const std::map<std::string, std::string>& objects)
    : impl_(std::make_unique<impl>(how, port, objects)) {}
fault_server::~fault_server() = default;
std::string fault_server::put(const std::string& name, std::string content) {
  return impl_->put(name, std::move(content));
}
void fault_server::set_listing(listing_manner how) { impl_->set_listing(how); }
void fault_server::set_rule(rule what) { impl_->set_rule(std::move(what)); }
std::uint16_t fault_server::port() const { return impl_->port(); }
std::uint64_t fault_server::requests() const { return impl_->requests(); }
std::uint64_t fault_server::connections() const { return impl_->connections(); }
std::string fault_server::all_headers() const { return impl_->all_headers(); }
std::string fault_server::address(const std::string& name) const { return impl_->address(name); }
const std::string& fault_server::certificate() const { return impl_->certificate(); }

}  // namespace leat::testing
