// sap-client differentiate: JSON of the request in, JSON of the response out.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/server_process.h"
#include "tests/support/sliding_point.h"

namespace sap::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A point that slides on a table; L is its speed, then a quarter of it.
json SlidingRequest() {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status =
      google::protobuf::util::MessageToJsonString(SlidingPoint().Request(), &text, options);
  EXPECT_TRUE(status.ok()) << status.message();
  json request = json::parse(text);
  request["cotangents"].push_back({{"velocity", {0.25, 0, 0}}});
  request["wanted"] = "contacts.friction,appliedImpulse";
  return request;
}

class DifferentiateCommandTest : public testing::Test {
 protected:
  std::string Write(const std::string& text, const std::string& name = "request.json") {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }

  static ProcessResult Differentiate(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {SAP_CLIENT_BINARY, "differentiate"});
    return RunProcess(arguments, kPatience);
  }

  static void ExpectClosedForm(const json& response) {
    const SlidingPoint point;
    EXPECT_NEAR(response.at("solution").at("velocity").at(0), point.Speed(), 1e-14);
    const json& gradients = response.at("gradients");
    ASSERT_EQ(gradients.size(), 2u);
    for (const int k : {0, 1}) {
      const double scale = k == 0 ? 1 : 0.25;
      EXPECT_NEAR(gradients[k].at("gradient").at("contacts").at("friction").at(0),
                  scale * point.SpeedByFriction(), 1e-13);
      EXPECT_NEAR(gradients[k].at("applied_impulse").at(0), scale * point.SpeedByImpulse(), 1e-13);
    }
    EXPECT_EQ(gradients[0].at("gradient").size(), 1u);  // what is wanted, and no more
    EXPECT_EQ(response.at("adjoint_status"), json({"ADJOINT_STATUS_DIFFERENTIATED"}));
    EXPECT_GT(response.at("kink_margin").at(0), 0.1);
  }

  TemporaryDirectory directory_;
};

TEST_F(DifferentiateCommandTest, PrintsTheGradientsOfTheClosedForm) {
  const ProcessResult result = Differentiate({Write(SlidingRequest().dump())});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  ExpectClosedForm(json::parse(result.out));
}

TEST_F(DifferentiateCommandTest, AServerAnswersTheSame) {
  const ServerProcess server;
  const std::string request = Write(SlidingRequest().dump());
  const std::string output = directory_ / "response.json";
  const ProcessResult result =
      Differentiate({request, "--server", server.address(), "--output", output});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  std::ifstream file(output);
  json served = json::parse(file);
  json embedded = json::parse(Differentiate({request}).out);
  ExpectClosedForm(served);
  for (json* response : {&served, &embedded}) {
    response->at("solution").erase("timings");
    response->at("solution").at("islands").erase("solve_time_s");
  }
  EXPECT_EQ(served, embedded);
}

TEST_F(DifferentiateCommandTest, ReadsGzippedRequests) {
  const std::string path = directory_ / "request.json.gz";
  const std::string text = SlidingRequest().dump();
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), text.size()), static_cast<int>(text.size()));
  gzclose(file);
  const ProcessResult result = Differentiate({path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectClosedForm(json::parse(result.out));
}

TEST_F(DifferentiateCommandTest, ErrorsNameTheFileAndTheField) {
  json request = SlidingRequest();
  request["cotangents"][1]["velocity"] = {1, 2};
  ProcessResult result = Differentiate({Write(request.dump())});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("request.json: cotangents[1].velocity has 2 values; 3 are"));
  request = SlidingRequest();
  request["wanted"] = "contacts.stickiness";
  result = Differentiate({Write(request.dump())});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("request.json: wanted.paths[0] is 'contacts.stickiness'"));
  request = SlidingRequest();
  request["cotangent"] = json::array();
  result = Differentiate({Write(request.dump())});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("request.json: "));
  EXPECT_THAT(result.err, HasSubstr("cotangent"));
  result = Differentiate({directory_ / "absent.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("absent.json: cannot open"));
}

// There is an answer, but no derivative is left in it.
TEST_F(DifferentiateCommandTest, DerivativesThatAreNotThereAreAnExitCode) {
  json request = SlidingRequest();
  request["options"]["time_budget"] = "0.000000001s";
  const ProcessResult result = Differentiate({Write(request.dump())});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ADJOINT_STATUS_DEADLINE"));
}

}  // namespace
}  // namespace sap::test
