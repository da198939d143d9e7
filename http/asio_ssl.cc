// SPDX-License-Identifier: Apache-2.0
// Asio's TLS, compiled once for the programs that serve it.
#include <boost/asio/ssl/impl/src.hpp>
