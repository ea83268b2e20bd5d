// Draws a scene as SVG: bodies in perspective, one color per island, transparent walls.
//
// Painter's algorithm: far objects are drawn first. Needs neither a window nor a library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "client/cpp/simulation/scene.h"

namespace sap::simulation {

struct PictureOptions {
  int width_px{960};
  int height_px{720};
  std::string caption;  // one line below the picture
  std::string note;     // a smaller line below the caption
};

// island_of_body: the island of each body, -1 (gray) without contact.
std::string DrawPicture(const Scene& scene, std::span<const int32_t> island_of_body,
                        const PictureOptions& options = {});

}  // namespace sap::simulation
