#include "client/cpp/simulation/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "client/cpp/simulation/camera.h"
#include "client/cpp/simulation/text_format.h"

namespace sap::simulation {
namespace {

constexpr double kMargin_px = 24;
constexpr double kCaption_px = 58;

struct Color {
  double red;  // 0 to 1
  double green;
  double blue;

  Color Mixed(const Color& other, double share) const {
    return {red + share * (other.red - red), green + share * (other.green - green),
            blue + share * (other.blue - blue)};
  }
};

constexpr Color kWhite{1, 1, 1};
constexpr Color kShade{0.07, 0.08, 0.16};
constexpr Color kNoIsland{0.72, 0.73, 0.75};

std::string Hex(const Color& color) {
  const auto byte = [](double part) { return std::lround(255 * std::clamp(part, 0.0, 1.0)); };
  return Format("#%02lx%02lx%02lx", byte(color.red), byte(color.green), byte(color.blue));
}

// Consecutive numbers get distant hues: steps of the golden angle, at two levels of lightness.
Color IslandColor(int32_t island) {
  if (island < 0) return kNoIsland;
  const double hue = std::fmod(0.58 + island * 0.6180339887498949, 1.0);
  const double lightness = island % 2 == 0 ? 0.60 : 0.52;
  const auto part = [&](double offset) {
    const double position = std::abs(std::fmod(6 * hue + offset, 6.0) - 3);
    return lightness + 0.27 * (std::clamp(position - 1, 0.0, 1.0) * 2 - 1);
  };
  return {part(0), part(4), part(2)};
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '&') {
      escaped += "&amp;";
    } else if (letter == '<') {
      escaped += "&lt;";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

class Painter {
 public:
  Painter(const Scene& scene, std::span<const int32_t> island_of_body,
          const PictureOptions& options)
      : scene_(scene),
        island_of_body_(island_of_body),
        options_(options),
        wall_height_(WallHeight(scene)),
        focus_(Focus()),
        camera_(focus_.center, {0.55, -1, 0.72}, 4.2 * focus_.radius),
        light_((-0.45 * camera_.right() + Vector3d(0, 0, 1.25) - 0.35 * Toward()).normalized()) {
    const std::vector<Vector3d> outline = Outline();
    camera_.Frame(outline, {kMargin_px, kMargin_px},
                  {options.width_px - kMargin_px, options.height_px - kMargin_px - kCaption_px});
  }

  std::string Draw() {
    svg_ += Format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\">\n",
        options_.width_px, options_.height_px, options_.width_px, options_.height_px);
    DrawBackground();
    DrawGround();
    DrawShadows();
    DrawWalls(/*in_front=*/false);
    for (const int body : FarToNear()) DrawBody(body);
    DrawWalls(/*in_front=*/true);
    DrawCaption();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  // Visible region: a ball around most bodies, or around the bin.
  struct Ball {
    Vector3d center;
    double radius;
  };

  Ball Focus() const {
    if (scene_.bin) {
      const double w = scene_.bin->half_width;
      const double h = 0.5 * wall_height_;
      return {{0, 0, h}, std::sqrt(2 * w * w + h * h)};
    }
    // The middle two thirds of the positions along each axis, since some spheres roll far away.
    Vector3d low, high;
    for (int axis = 0; axis < 3; ++axis) {
      std::vector<double> places{0};
      for (const Body& body : scene_.bodies) places.push_back(body.position[axis]);
      std::sort(places.begin(), places.end());
      low[axis] = places[places.size() / 6];
      high[axis] = places[places.size() - 1 - places.size() / 6];
    }
    return {0.5 * (low + high), std::max(0.3, 0.75 * (high - low).norm())};
  }

  // Walls have no upper end. They are drawn up to the highest body, but between half the height of
  // the bin and all of it.
  static double WallHeight(const Scene& scene) {
    if (!scene.bin) return 0;
    double top = 0;
    for (const Body& body : scene.bodies) {
      top = std::max(top, body.position.z() + body.shape.bounding_radius());
    }
    return std::clamp(top, 0.5 * scene.bin->height, scene.bin->height);
  }

  Vector3d Toward() const { return (focus_.center - camera_.eye()).normalized(); }

  // Points that must be inside the picture.
  std::vector<Vector3d> Outline() const {
    std::vector<Vector3d> points;
    if (scene_.bin) {
      for (const Vector2d& corner : BinCorners()) {
        points.emplace_back(corner.x(), corner.y(), 0);
        points.emplace_back(corner.x(), corner.y(), wall_height_);
      }
    }
    for (const Body& body : scene_.bodies) {
      if (!scene_.bin && (body.position - focus_.center).norm() > focus_.radius) continue;
      const double r = body.shape.bounding_radius();
      points.push_back(body.position + r * camera_.up());
      points.push_back(body.position - r * camera_.up());
      points.push_back(body.position + r * camera_.right());
      points.push_back(body.position - r * camera_.right());
    }
    if (points.empty()) points.push_back(focus_.center);
    return points;
  }

  std::array<Vector2d, 4> BinCorners() const {
    const double w = scene_.bin->half_width;
    return {Vector2d(-w, -w), Vector2d(w, -w), Vector2d(w, w), Vector2d(-w, w)};
  }

  std::string Points(std::span<const Vector3d> corners) const {
    std::string text;
    for (const Vector3d& corner : corners) {
      const Vector2d p = camera_.Project(corner);
      text += Format("%.1f,%.1f ", p.x(), p.y());
    }
    text.pop_back();
    return text;
  }

  void Polygon(std::span<const Vector3d> corners, const std::string& style) {
    svg_ += "<polygon points=\"" + Points(corners) + "\" " + style + "/>\n";
  }

  void Line(const Vector3d& from, const Vector3d& to, const std::string& style) {
    const std::array<Vector3d, 2> ends{from, to};
    svg_ += "<polyline points=\"" + Points(ends) + "\" " + style + "/>\n";
  }

  void DrawBackground() {
    svg_ +=
        "<defs><linearGradient id=\"sky\" x2=\"0\" y2=\"1\"><stop stop-color=\"#f7f9fc\"/>"
        "<stop offset=\"1\" stop-color=\"#dfe5ee\"/></linearGradient>\n";
    // One gradient per island, for its spheres.
    std::set<int32_t> islands;
    for (size_t i = 0; i < scene_.bodies.size(); ++i) {
      if (scene_.bodies[i].shape.kind == ShapeKind::kSphere) islands.insert(island_of_body_[i]);
    }
    for (const int32_t island : islands) {
      const Color color = IslandColor(island);
      svg_ += Format(
          "<radialGradient id=\"s%d\" cx=\"0.42\" cy=\"0.4\" r=\"0.62\" fx=\"0.34\" fy=\"0.28\">",
          island);
      svg_ += "<stop stop-color=\"" + Hex(color.Mixed(kWhite, 0.62)) + "\"/>";
      svg_ += "<stop offset=\"0.45\" stop-color=\"" + Hex(color.Mixed(kWhite, 0.05)) + "\"/>";
      svg_ += "<stop offset=\"1\" stop-color=\"" + Hex(color.Mixed(kShade, 0.55)) +
              "\"/></radialGradient>\n";
    }
    svg_ += Format("</defs>\n<rect width=\"%d\" height=\"%d\" fill=\"url(#sky)\"/>\n",
                   options_.width_px, options_.height_px);
  }

  void DrawGround() {
    const Vector3d middle(focus_.center.x(), focus_.center.y(), 0);
    const double half = (scene_.bin ? 1.0 : 1.5) * focus_.radius;
    DrawGrid(middle, half, 6, "fill=\"#f6f7f6\" stroke=\"#c9ced6\"", "stroke=\"#e4e7ea\"");
    if (scene_.bin) {
      DrawGrid({0, 0, 0}, scene_.bin->half_width, 8, "fill=\"#fdfdfb\" stroke=\"#b9c0cc\"",
               "stroke=\"#e3e5e6\"");
    }
  }

  void DrawGrid(const Vector3d& middle, double half, int cells, const std::string& area_style,
                const std::string& line_style) {
    const Vector3d x(half, 0, 0);
    const Vector3d y(0, half, 0);
    const std::array<Vector3d, 4> corners{middle - x - y, middle + x - y, middle + x + y,
                                          middle - x + y};
    Polygon(corners, area_style);
    for (int i = 1; i < cells; ++i) {
      const double place = 2.0 * i / cells - 1;
      Line(middle + place * x - y, middle + place * x + y, line_style);
      Line(middle + place * y - x, middle + place * y + x, line_style);
    }
  }

  // Shadow of a point on the ground.
  Vector3d OnGround(const Vector3d& x) const {
    const double ground = scene_.planes.empty() ? 0 : scene_.planes.front().offset;
    return x - (x.z() - ground) / light_.z() * light_;
  }

  // All shadows are in one layer, so that overlapping ones do not add up.
  void DrawShadows() {
    svg_ += "<g opacity=\"0.16\" fill=\"#10142c\">\n";
    for (const Body& body : scene_.bodies) {
      if (!Visible(body)) continue;
      if (body.shape.kind == ShapeKind::kBox) {
        const Matrix3d R = body.rotation();
        for (int axis = 0; axis < 3; ++axis) {
          for (const double sign : {-1.0, 1.0}) {
            std::array<Vector3d, 4> corners = BoxFace(body, R, axis, sign);
            for (Vector3d& corner : corners) corner = OnGround(corner);
            Polygon(corners, "");
          }
        }
        continue;
      }
      // The outline of the sphere seen from the light.
      const Vector3d u = light_.unitOrthogonal();
      const Vector3d v = light_.cross(u);
      std::array<Vector3d, 20> rim;
      for (size_t i = 0; i < rim.size(); ++i) {
        const double angle = 2 * EIGEN_PI * static_cast<double>(i) / rim.size();
        rim[i] = OnGround(body.position +
                          body.shape.radius() * (std::cos(angle) * u + std::sin(angle) * v));
      }
      Polygon(rim, "");
    }
    svg_ += "</g>\n";
  }

  // Walls whose inner side faces the camera are behind the bodies, the others in front.
  void DrawWalls(bool in_front) {
    if (!scene_.bin) return;
    const std::array<Vector2d, 4> bottom = BinCorners();
    const Vector3d rise(0, 0, wall_height_);
    for (int i = 0; i < 4; ++i) {
      const Vector3d from(bottom[i].x(), bottom[i].y(), 0);
      const Vector3d to(bottom[(i + 1) % 4].x(), bottom[(i + 1) % 4].y(), 0);
      const Vector3d outward = (to - from).cross(Vector3d::UnitZ());
      if ((outward.dot(camera_.eye() - from) > 0) != in_front) continue;
      const std::array<Vector3d, 4> corners{from, to, to + rise, from + rise};
      Polygon(corners, Format("fill=\"#7fa3d1\" fill-opacity=\"%.2f\" stroke=\"#6d88b0\" "
                              "stroke-opacity=\"%.2f\" stroke-width=\"1.5\" "
                              "stroke-linejoin=\"round\"",
                              in_front ? 0.05 : 0.14, in_front ? 0.55 : 0.8));
    }
  }

  bool Visible(const Body& body) const {
    return camera_.Depth(body.position) > 0.2 * focus_.radius;
  }

  std::vector<int> FarToNear() const {
    std::vector<int> order;
    for (size_t i = 0; i < scene_.bodies.size(); ++i) {
      if (Visible(scene_.bodies[i])) order.push_back(static_cast<int>(i));
    }
    std::sort(order.begin(), order.end(), [this](int i, int j) {
      const double distance_i = (scene_.bodies[i].position - camera_.eye()).squaredNorm();
      const double distance_j = (scene_.bodies[j].position - camera_.eye()).squaredNorm();
      return distance_i != distance_j ? distance_i > distance_j : i < j;
    });
    return order;
  }

  static std::array<Vector3d, 4> BoxFace(const Body& body, const Matrix3d& R, int axis,
                                         double sign) {
    const Vector3d& h = body.shape.half_extent;
    const Vector3d middle = body.position + sign * h[axis] * R.col(axis);
    const Vector3d u = h[(axis + 1) % 3] * R.col((axis + 1) % 3);
    const Vector3d v = h[(axis + 2) % 3] * R.col((axis + 2) % 3);
    return {middle + u + v, middle - u + v, middle - u - v, middle + u - v};
  }

  void DrawBody(int index) {
    const Body& body = scene_.bodies[index];
    const Color color = IslandColor(island_of_body_[index]);
    if (body.shape.kind == ShapeKind::kSphere) {
      const Vector2d center = camera_.Project(body.position);
      svg_ +=
          Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"url(#s%d)\"/>\n", center.x(),
                 center.y(), camera_.ProjectRadius(body.position, body.shape.radius()),
                 island_of_body_[index]);
      return;
    }
    const Matrix3d R = body.rotation();
    for (int axis = 0; axis < 3; ++axis) {
      for (const double sign : {-1.0, 1.0}) {
        const std::array<Vector3d, 4> corners = BoxFace(body, R, axis, sign);
        const Vector3d outward = sign * R.col(axis);
        if (outward.dot(camera_.eye() - corners[0]) <= 0) continue;
        const double brightness = outward.dot(light_);
        const Color face = brightness > 0.5 ? color.Mixed(kWhite, 0.9 * (brightness - 0.5))
                                            : color.Mixed(kShade, 0.5 * (0.5 - brightness));
        Polygon(corners, "fill=\"" + Hex(face) + "\" stroke=\"" + Hex(color.Mixed(kShade, 0.6)) +
                             "\" stroke-width=\"0.8\" stroke-linejoin=\"round\"");
      }
    }
  }

  void DrawCaption() {
    const double top = options_.height_px - kCaption_px;
    svg_ += Format("<rect y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#ffffff\"/>\n", top,
                   options_.width_px, kCaption_px);
    DrawText(options_.caption, top + 25, 17, "#222a3a");
    DrawText(options_.note, top + 45, 13, "#5d6675");
  }

  void DrawText(const std::string& text, double y, int size, const char* fill) {
    svg_ += Format(
        "<text x=\"%.0f\" y=\"%.1f\" font-family=\"Helvetica, Arial, sans-serif\" "
        "font-size=\"%d\" fill=\"%s\">",
        kMargin_px, y, size, fill);
    svg_ += Escaped(text) + "</text>\n";
  }

  const Scene& scene_;
  const std::span<const int32_t> island_of_body_;
  const PictureOptions& options_;
  const double wall_height_;
  const Ball focus_;
  Camera camera_;
  const Vector3d light_;  // unit, toward the light
  std::string svg_;
};

}  // namespace

std::string DrawPicture(const Scene& scene, std::span<const int32_t> island_of_body,
                        const PictureOptions& options) {
  return Painter(scene, island_of_body, options).Draw();
}

}  // namespace sap::simulation
