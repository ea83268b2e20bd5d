#include "tests/e2e/clients/tested_client.h"

#include <cstdlib>

namespace sap::test {

std::string Name(Language language) {
  switch (language) {
    case Language::kCpp:
      return "Cpp";
    case Language::kC:
      return "C";
    case Language::kPython:
      return "Python";
    case Language::kPythonAsyncio:
      return "PythonAsyncio";
  }
  return "";
}

const std::vector<Language>& Languages() {
  static const std::vector<Language> kLanguages = [] {
    std::vector<Language> languages{Language::kCpp};
    if (SAP_HAS_C_CLIENT) languages.push_back(Language::kC);
    if (std::getenv("SAP_PYTHON") != nullptr) {
      languages.insert(languages.end(), {Language::kPython, Language::kPythonAsyncio});
    }
    return languages;
  }();
  return kLanguages;
}

Connected Connect(Language language, const std::string& address,
                  const client::ConnectOptions& options,
                  std::optional<std::chrono::nanoseconds> deadline) {
  switch (language) {
    case Language::kCpp:
      return ConnectCpp(address, options, deadline);
    case Language::kC:
      return ConnectC(address, options, deadline);
    case Language::kPython:
      return ConnectPython("sync", address, options, deadline);
    case Language::kPythonAsyncio:
      return ConnectPython("asyncio", address, options, deadline);
  }
  return nullptr;
}

#if !SAP_HAS_C_CLIENT
Connected ConnectC(const std::string&, const client::ConnectOptions&,
                   std::optional<std::chrono::nanoseconds>) {
  return tl::unexpected(client::Error{.message = "the C library is not built"});
}
#endif

}  // namespace sap::test
