// SPDX-License-Identifier: Apache-2.0
// Compares lists that an API server has sent in protobuf and in JSON: same_objects PROTOBUF JSON. Prints the
// difference.
#include "tests/controller/kube/same_objects.h"

#include <iostream>

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: same_objects PROTOBUF JSON\n";
    return 2;
  }
  const std::string difference = muster::controller::Difference(words[1], words[2]);
  std::cout << difference;
  return difference.empty() ? 0 : 1;
}
