// SPDX-License-Identifier: Apache-2.0
#include "base/startup_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace muster {

void DropStartupPages() {
  auto drop = [](dl_phdr_info* program, size_t, void*) {
    const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < program->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = program->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0)
        continue;  // the file does not have the current content of writable pages
      // Whole pages only: the last page may be shared with the next segment.
      const uintptr_t begin = (program->dlpi_addr + segment.p_vaddr) / page * page;
      const uintptr_t end = (program->dlpi_addr + segment.p_vaddr + segment.p_memsz) / page * page;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the program headers give addresses as numbers
      if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 1;  // stop: the first object is the program itself
  };
  ::dl_iterate_phdr(drop, nullptr);
}

}  // namespace muster
