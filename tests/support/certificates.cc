#include "tests/support/certificates.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/child_process.h"

namespace sap::test {
namespace {

void OpenSsl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/openssl");
  const ProcessResult result = RunProcess(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

CertificateFiles FilesOf(const std::filesystem::path& directory, const std::string& name) {
  return {(directory / (name + ".crt")).string(), (directory / (name + ".key")).string()};
}

void MakeKey(const std::string& path) {
  OpenSsl({"ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path});
}

}  // namespace

void WritePem(const CertificateFiles& files, const std::filesystem::path& path) {
  std::ofstream(path) << std::ifstream(files.certificate).rdbuf()
                      << std::ifstream(files.key).rdbuf();
}

CertificateAuthority::CertificateAuthority(const std::filesystem::path& directory,
                                           const std::string& name)
    : directory_(directory), files_(FilesOf(directory, name)) {
  MakeKey(files_.key);
  OpenSsl({"req", "-x509", "-new", "-key", files_.key, "-subj", "/CN=" + name, "-days", "30",
           "-out", files_.certificate});
}

CertificateFiles CertificateAuthority::Issue(const std::string& name, int days) const {
  const CertificateFiles files = FilesOf(directory_, name);
  const std::string request = files.certificate + ".request";
  const std::string extensions = files.certificate + ".extensions";
  std::ofstream(extensions) << "subjectAltName=DNS:" << name << ",DNS:localhost,IP:127.0.0.1\n";
  MakeKey(files.key);
  OpenSsl({"req", "-new", "-key", files.key, "-subj", "/CN=" + name, "-out", request});
  OpenSsl({"x509", "-req", "-in", request, "-CA", files_.certificate, "-CAkey", files_.key,
           "-CAcreateserial", "-days", std::to_string(days), "-extfile", extensions, "-out",
           files.certificate});
  return files;
}

}  // namespace sap::test
