// Boost.Process v2, compiled once for the whole program, in the one room that starts processes: at -O0 it asks for
// Boost.Filesystem, which nothing of ours needs.
#include <boost/asio.hpp>  // which it uses and does not include whole

#include <boost/process/v2/src.hpp>
