// SPDX-License-Identifier: Apache-2.0
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
  std::string chain;      // the server's certificate, then the intermediate ones
  std::string key;        // of the server's certificate; without a passphrase
  std::string client_ca;  // if set: only clients with a certificate of one of these authorities are served
  bool operator==(const ServerCertificate&) const = default;
};

class ServerTls final : public ServerStreams {
 public:
  // InvalidArgument names the part that is not a PEM, or says that the key does not belong to the certificate.
  static StatusOr<std::unique_ptr<ServerTls>> Make(const ServerCertificate& certificate);
  ~ServerTls() override;

  // Sets the certificate for new connections; open ones keep theirs. Errors are those of Make; after an error the old
  // certificate stays.
  Status Replace(const ServerCertificate& certificate);

  std::unique_ptr<ServerStream> Make(boost::asio::ip::tcp::socket socket) override;

 private:
  class Context;
  explicit ServerTls(std::shared_ptr<Context> context);
  std::shared_ptr<Context> context_;
};

}  // namespace muster::http
