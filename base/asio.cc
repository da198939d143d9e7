// SPDX-License-Identifier: Apache-2.0
// Asio, compiled once for the whole program.
#include <boost/asio/impl/src.hpp>
