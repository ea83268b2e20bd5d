#include "client/mujoco/preload/got_slots.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace sap::mujoco {
namespace {

#ifdef __x86_64__
constexpr uint64_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#else
constexpr uint64_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

// Relocations of an object and what they refer to, from its dynamic section. glibc has made the
// addresses absolute.
struct Relocations {
  const ElfW(Rela) * table[2] = {};  // of calls, of others
  size_t bytes[2] = {};
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

Relocations RelocationsOf(const ElfW(Dyn) * entry) {
  Relocations found;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const auto* place = reinterpret_cast<const void*>(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_JMPREL:
        found.table[0] = static_cast<const ElfW(Rela)*>(place);
        break;
      case DT_PLTRELSZ:
        found.bytes[0] = entry->d_un.d_val;
        break;
      case DT_RELA:
        found.table[1] = static_cast<const ElfW(Rela)*>(place);
        break;
      case DT_RELASZ:
        found.bytes[1] = entry->d_un.d_val;
        break;
      case DT_SYMTAB:
        found.symbols = static_cast<const ElfW(Sym)*>(place);
        break;
      case DT_STRTAB:
        found.names = static_cast<const char*>(place);
        break;
      default:
        break;
    }
  }
  return found;
}

bool IsSlot(uint64_t type) { return type == kSlotTypes[0] || type == kSlotTypes[1]; }

// The slot's page is read-only after the relocation of its object, where that was linked so.
bool Write(void** slot, void* function) {
  if (*slot == function) return true;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page_bytes - 1));
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  return true;
}

struct Writing {
  std::span<const NamedFunction> functions;
  bool is_written = true;
};

void WriteSlotsOf(const dl_phdr_info& object, const Relocations& relocations, Writing* writing) {
  for (int kind = 0; kind < 2; ++kind) {
    const size_t count = relocations.bytes[kind] / sizeof(ElfW(Rela));
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& relocation = relocations.table[kind][i];
      if (!IsSlot(ELF64_R_TYPE(relocation.r_info))) continue;
      const ElfW(Sym)& symbol = relocations.symbols[ELF64_R_SYM(relocation.r_info)];
      const char* name = relocations.names + symbol.st_name;
      for (const NamedFunction& each : writing->functions) {
        if (strcmp(name, each.name) != 0) continue;
        auto** slot = reinterpret_cast<void**>(object.dlpi_addr + relocation.r_offset);
        writing->is_written &= Write(slot, each.function);
      }
    }
  }
}

int WriteToObject(dl_phdr_info* object, size_t, void* context) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + header.p_vaddr);
    const Relocations relocations = RelocationsOf(dynamic);
    // The object of the kernel, vdso, has relative addresses and no relocations.
    const bool has_all = relocations.symbols != nullptr && relocations.names != nullptr &&
                         (relocations.table[0] != nullptr || relocations.table[1] != nullptr);
    if (has_all) WriteSlotsOf(*object, relocations, static_cast<Writing*>(context));
  }
  return 0;
}

}  // namespace

bool WriteSlots(std::span<const NamedFunction> functions) {
  Writing writing{functions};
  dl_iterate_phdr(&WriteToObject, &writing);
  return writing.is_written;
}

}  // namespace sap::mujoco
