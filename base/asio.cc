// Asio and Process v2, compiled once for the whole program.
#include <boost/asio/impl/src.hpp>
#include <boost/process/v2/src.hpp>
