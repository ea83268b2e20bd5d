// Certificate authorities and certificates, generated with the openssl command.
#pragma once

#include <filesystem>
#include <string>

namespace sap::test {

// Files in PEM.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// Writes both to one file, as HAProxy reads them.
void WritePem(const CertificateFiles& files, const std::filesystem::path& path);

class CertificateAuthority {
 public:
  // Writes its files to the directory, under its name.
  CertificateAuthority(const std::filesystem::path& directory, const std::string& name);

  // The certificate of the authority.
  const std::string& certificate() const { return files_.certificate; }

  // A certificate for a name, which is also good for localhost and 127.0.0.1; expired if `days` is
  // not positive. The name is that of its files, too.
  CertificateFiles Issue(const std::string& name, int days = 30) const;

 private:
  std::filesystem::path directory_;
  CertificateFiles files_;
};

}  // namespace sap::test
