#include "solver/cholesky/metis_random.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sap {
namespace {

// Null while the thread is not within METIS.
thread_local RandomSequence* metis_random = nullptr;

// The functions that METIS called before: copies of these in another library of the process. Null
// where METIS called its own.
std::atomic<uint32_t (*)()> earlier_rand_int32{nullptr};
std::atomic<void (*)(uint64_t)> earlier_rand_init{nullptr};

// In glibc rand and random are the same.
uint32_t RandInt32() {
  if (metis_random != nullptr) return metis_random->Next();
  const auto earlier = earlier_rand_int32.load();
  return earlier != nullptr ? earlier() : static_cast<uint32_t>(random());
}

void RandInit(uint64_t seed) {
  if (metis_random != nullptr) return;
  const auto earlier = earlier_rand_init.load();
  if (earlier != nullptr) return earlier(seed);
  srandom(static_cast<unsigned>(seed));
}

// Imported functions of a loaded library by name, as the dynamic linker has them.
struct Imports {
  ElfW(Addr) base{0};
  const ElfW(Rela) * relocations{nullptr};
  size_t count{0};
  const ElfW(Sym) * symbols{nullptr};
  const char* names{nullptr};
};

// glibc has relocated the pointers of the dynamic section, as every linker for x86-64 and arm64
// lets it.
Imports ImportsOf(const dl_phdr_info& library) {
  Imports imports{.base = library.dlpi_addr};
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    if (library.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + library.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_JMPREL) {
        imports.relocations = reinterpret_cast<const ElfW(Rela)*>(address);
      } else if (entry->d_tag == DT_PLTRELSZ) {
        imports.count = entry->d_un.d_val / sizeof(ElfW(Rela));
      } else if (entry->d_tag == DT_SYMTAB) {
        imports.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      } else if (entry->d_tag == DT_STRTAB) {
        imports.names = reinterpret_cast<const char*>(address);
      }
    }
  }
  return imports;
}

bool Contains(const dl_phdr_info& library, ElfW(Addr) address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library.dlpi_phdr[i];
    const ElfW(Addr) start = library.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address - start < segment.p_memsz) return true;
  }
  return false;
}

// The page stays writable: the linker may have left it so, for entries that it fills at the first
// call.
template <typename Function>
void Replace(const dl_phdr_info& metis, const Imports& imports, std::string_view name,
             Function* function, std::atomic<Function*>* earlier) {
  for (size_t i = 0; i < imports.count; ++i) {
    const ElfW(Rela)& relocation = imports.relocations[i];
    const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(relocation.r_info)];
    if (imports.names + symbol.st_name != name) continue;
    const auto page_size = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    const ElfW(Addr) address = imports.base + relocation.r_offset;
    auto* const page = reinterpret_cast<void*>(address & ~(page_size - 1));
    if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
    // Another thread may be calling through it.
    const std::atomic_ref entry(*reinterpret_cast<Function**>(address));
    Function* const present = entry.load();
    if (!Contains(metis, reinterpret_cast<ElfW(Addr)>(present))) earlier->store(present);
    entry.store(function);
  }
}

// Else METIS would call functions of a library that dlclose has unloaded.
void KeepThisLibraryLoaded() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&RandInt32), &here) != 0) {
    (void)dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

int ReplaceIn(dl_phdr_info* library, size_t, void* function_of_metis) {
  if (!Contains(*library, reinterpret_cast<ElfW(Addr)>(function_of_metis))) return 0;
  const Imports imports = ImportsOf(*library);
  if (imports.relocations == nullptr || imports.symbols == nullptr || imports.names == nullptr) {
    return 1;
  }
  KeepThisLibraryLoaded();
  Replace(*library, imports, "gk_randint32", &RandInt32, &earlier_rand_int32);
  Replace(*library, imports, "gk_randinit", &RandInit, &earlier_rand_init);
  return 1;  // no other library is asked for
}

}  // namespace

MetisRandomScope::MetisRandomScope(RandomSequence* random) { metis_random = random; }

MetisRandomScope::~MetisRandomScope() { metis_random = nullptr; }

void ReplaceRandomNumbersOfMetis(const void* function_of_metis) {
  dl_iterate_phdr(&ReplaceIn, const_cast<void*>(function_of_metis));
}

}  // namespace sap
