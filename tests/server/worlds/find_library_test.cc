// The library that `auto` finds: that of LD_LIBRARY_PATH first, then that of the machine.
#include "server/worlds/find_library.h"

#include <gtest/gtest.h>

#include <fstream>

namespace sap::test {
namespace {

namespace fs = std::filesystem;

class FindLibraryTest : public testing::Test {
 protected:
  FindLibraryTest() : root_(fs::path(testing::TempDir()) / "find_library_test") {
    fs::remove_all(root_);
  }
  ~FindLibraryTest() override { fs::remove_all(root_); }

  std::string Make(const std::string& path, const std::string& text = "") {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
  std::string Find(const std::string& library_path = "") const {
    return FindMujoco(library_path, root_);
  }

  const fs::path root_;
};

TEST_F(FindLibraryTest, WhereThereIsNoneNothingIsFound) {
  Make("usr/lib/libmujoco.so.4.0.0");
  EXPECT_EQ(Find(), "");
}

TEST_F(FindLibraryTest, TheFoldersOfTheLoaderAreSearchedInItsOrder) {
  const std::string usual = Make("usr/lib/libmujoco.so");
  EXPECT_EQ(Find(), usual);
  Make("etc/ld.so.conf.d/mujoco.conf", "# comment\n/opt/mujoco/lib\n");
  EXPECT_EQ(Find(), usual);
  const std::string configured = Make("opt/mujoco/lib/libmujoco.so");
  EXPECT_EQ(Find(), configured);
  const std::string own = Make("own/libmujoco.so");
  EXPECT_EQ(Find("/nowhere::" + (root_ / "own").string()), own);
}

}  // namespace
}  // namespace sap::test
