// TLS for http/server.h: 1.2 and later, with OpenSSL's default ciphers.
//
// Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/server_stream.h"

namespace muster::http {

// PEM texts.
struct ServerCertificate {
  std::string chain;      // the server's own first, then what leads to its authority
  std::string key;        // of the first; without a passphrase
  std::string client_ca;  // given: only a client with a certificate of one of these authorities is served
  bool operator==(const ServerCertificate&) const = default;
};

class ServerTls final : public ServerStreams {
 public:
  // InvalidArgument names the part that is no PEM, a key that is not the certificate's, or an authority that is none.
  static StatusOr<std::unique_ptr<ServerTls>> Make(const ServerCertificate& certificate);
  ~ServerTls() override;

  // For connections that come from now on; those that are there keep theirs. On an error, as Make's, the old
  // certificate stays.
  Status Replace(const ServerCertificate& certificate);

  std::unique_ptr<ServerStream> Make(boost::asio::ip::tcp::socket socket) override;

 private:
  class Context;
  explicit ServerTls(std::shared_ptr<Context> context);
  std::shared_ptr<Context> context_;
};

}  // namespace muster::http
