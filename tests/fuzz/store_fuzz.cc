// libFuzzer: the store's parser and key space. Corpus: tests/fuzz/corpus/store_fuzz.
#include "tests/fuzz/store_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::store::FuzzStore({reinterpret_cast<const char*>(data), size});
  return 0;
}
