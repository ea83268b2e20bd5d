// Which process answers.
#pragma once

#include <string>

namespace sap {

// 16 hexadecimal digits, different for each process.
const std::string& BootId();

}  // namespace sap
