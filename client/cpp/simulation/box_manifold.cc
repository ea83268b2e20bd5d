#include "client/cpp/simulation/box_manifold.h"

#include <algorithm>
#include <cmath>

namespace sap::simulation {
namespace {

// A direction within 5 degrees of a face normal selects that face.
constexpr double kFaceCosine = 0.9962;
// If the faces of a and b are aligned with the direction to within this cosine, the face of a is
// taken, so that rounding does not make the normal alternate from step to step.
constexpr double kTie = 1e-4;
// Corners closer to the line between their neighbors than this fraction of the reference face are
// left out: distances are linear over the polygon, so they add no constraint. Otherwise two faces
// of equal size would change between four and eight corners with every micrometer of motion.
constexpr double kFlat = 0.01;
// Squared sine of the angle up to which two edges are treated as parallel: they share a segment.
constexpr double kParallelEdges = 1e-4;

// A face of a box: its outward normal is sign * axes.col(axis).
struct Face {
  int axis;
  double sign;
  double cosine;  // between its outward normal and the direction that selected it
};

Face MostAlignedFace(const OrientedBox& box, const Vector3d& direction) {
  const Vector3d cosines = box.axes.transpose() * direction;
  int axis;
  cosines.cwiseAbs().maxCoeff(&axis);
  return {axis, cosines[axis] < 0 ? -1.0 : 1.0, std::abs(cosines[axis])};
}

// A convex polygon of up to eight corners in the frame of the reference face: x and y along its
// sides, z outward from its plane.
struct Polygon {
  std::array<Vector3d, 8> corners;
  int count{0};

  void Add(const Vector3d& corner) {
    if (count < 8) corners[count++] = corner;
  }
};

// The part of the polygon with sign * corner[coordinate] <= limit [Sutherland and Hodgman 1974].
Polygon Clip(const Polygon& polygon, int coordinate, double sign, double limit) {
  Polygon clipped;
  for (int i = 0; i < polygon.count; ++i) {
    const Vector3d& from = polygon.corners[i];
    const Vector3d& to = polygon.corners[(i + 1) % polygon.count];
    const double excess_from = sign * from[coordinate] - limit;
    const double excess_to = sign * to[coordinate] - limit;
    if (excess_from <= 0) clipped.Add(from);
    if ((excess_from < 0 && excess_to > 0) || (excess_from > 0 && excess_to < 0)) {
      clipped.Add(from + excess_from / (excess_from - excess_to) * (to - from));
    }
  }
  return clipped;
}

double DistanceToSegment(const Vector3d& point, const Vector3d& from, const Vector3d& to) {
  const Vector3d along = to - from;
  const double length2 = along.squaredNorm();
  const double place = length2 > 0 ? std::clamp((point - from).dot(along) / length2, 0.0, 1.0) : 0;
  return (point - from - place * along).norm();
}

Polygon CornersBelow(const Polygon& polygon, double limit) {
  Polygon below;
  for (int i = 0; i < polygon.count; ++i) {
    if (polygon.corners[i].z() <= limit) below.Add(polygon.corners[i]);
  }
  return below;
}

// Removes the flattest corner while it is flatter than the limit; at least two remain.
void LeaveOutFlatCorners(double limit, Polygon* polygon) {
  while (polygon->count > 2) {
    int flattest = 0;
    double least = limit;
    for (int i = 0; i < polygon->count; ++i) {
      const Vector3d& before = polygon->corners[(i + polygon->count - 1) % polygon->count];
      const Vector3d& after = polygon->corners[(i + 1) % polygon->count];
      const double height = DistanceToSegment(polygon->corners[i], before, after);
      if (height < least) {
        least = height;
        flattest = i;
      }
    }
    if (least >= limit) return;
    std::copy(polygon->corners.begin() + flattest + 1, polygon->corners.begin() + polygon->count,
              polygon->corners.begin() + flattest);
    --polygon->count;
  }
}

// Clips the face of `incident` opposite to the face of `reference` by the sides of the latter.
// flip: +1 if the outward normal of the reference face is the contact normal, -1 if it is the
// opposite.
BoxManifold ClipFaces(const OrientedBox& reference, const Face& face, const OrientedBox& incident,
                      double flip, double reach) {
  const int x_axis = (face.axis + 1) % 3;
  const int y_axis = (face.axis + 2) % 3;
  Matrix3d frame;
  frame << reference.axes.col(x_axis), reference.axes.col(y_axis),
      face.sign * reference.axes.col(face.axis);
  const Vector3d outward = frame.col(2);
  const Vector3d origin = reference.center + reference.half_extent[face.axis] * outward;

  const Face other = MostAlignedFace(incident, -outward);
  const Vector3d center = frame.transpose() * (incident.center - origin +
                                               other.sign * incident.half_extent[other.axis] *
                                                   incident.axes.col(other.axis));
  const int u_axis = (other.axis + 1) % 3;
  const int v_axis = (other.axis + 2) % 3;
  const Vector3d u = incident.half_extent[u_axis] * (frame.transpose() * incident.axes.col(u_axis));
  const Vector3d v = incident.half_extent[v_axis] * (frame.transpose() * incident.axes.col(v_axis));
  Polygon polygon;
  polygon.Add(center + u + v);
  polygon.Add(center - u + v);
  polygon.Add(center - u - v);
  polygon.Add(center + u - v);
  const double x_limit = reference.half_extent[x_axis];
  const double y_limit = reference.half_extent[y_axis];
  polygon = Clip(polygon, 0, 1, x_limit);
  polygon = Clip(polygon, 0, -1, x_limit);
  polygon = Clip(polygon, 1, 1, y_limit);
  polygon = Clip(polygon, 1, -1, y_limit);
  polygon = CornersBelow(polygon, reach);
  LeaveOutFlatCorners(kFlat * 2 * std::min(x_limit, y_limit), &polygon);

  BoxManifold manifold;
  manifold.normal = flip * outward;
  for (int i = 0; i < polygon.count; ++i) {
    Vector3d corner = polygon.corners[i];
    const double phi0 = corner.z();
    corner.z() *= 0.5;
    manifold.Add(origin + frame * corner, phi0);
  }
  return manifold;
}

// The edge of a box that is farthest along a direction nearly perpendicular to it: its middle and
// half of the vector between its ends.
struct Edge {
  Vector3d middle;
  Vector3d half;
};

Edge SupportingEdge(const OrientedBox& box, const Vector3d& direction) {
  const Vector3d cosines = box.axes.transpose() * direction;
  int along;
  cosines.cwiseAbs().minCoeff(&along);
  Vector3d middle = box.center;
  for (int axis = 0; axis < 3; ++axis) {
    if (axis == along) continue;
    middle += std::copysign(box.half_extent[axis], cosines[axis]) * box.axes.col(axis);
  }
  return {middle, box.half_extent[along] * box.axes.col(along)};
}

// Adds the contact of edges p and q at the given places along them, in [-1, 1].
void AddEdgePoint(const Edge& p, double place_p, const Edge& q, double place_q, double reach,
                  BoxManifold* manifold) {
  const Vector3d on_a = p.middle + place_p * p.half;
  const Vector3d on_b = q.middle + place_q * q.half;
  manifold->Add(0.5 * (on_a + on_b), std::min(reach, manifold->normal.dot(on_a - on_b)));
}

// One point where two edges cross; if they are parallel, the two ends of the segment that they
// share.
BoxManifold CrossEdges(const OrientedBox& a, const OrientedBox& b, const Vector3d& direction,
                       double reach) {
  BoxManifold manifold;
  manifold.normal = direction;
  const Edge p = SupportingEdge(a, -direction);
  const Edge q = SupportingEdge(b, direction);
  // |p.middle + s p.half - q.middle - t q.half| is least where its derivatives in s and t vanish.
  const Vector3d between = q.middle - p.middle;
  const double pp = p.half.squaredNorm();
  const double qq = q.half.squaredNorm();
  const double pq = p.half.dot(q.half);
  const double determinant = pp * qq - pq * pq;
  if (determinant > kParallelEdges * pp * qq) {
    const double s = (qq * p.half.dot(between) - pq * q.half.dot(between)) / determinant;
    const double t = (pq * p.half.dot(between) - pp * q.half.dot(between)) / determinant;
    AddEdgePoint(p, std::clamp(s, -1.0, 1.0), q, std::clamp(t, -1.0, 1.0), reach, &manifold);
    return manifold;
  }
  const double middle = p.half.dot(between) / pp;
  const double overhang = std::abs(pq) / pp;
  const double start = std::max(-1.0, middle - overhang);
  const double end = std::min(1.0, middle + overhang);
  for (const double s : {start, end}) {
    const double t = (s * pq - q.half.dot(between)) / qq;
    AddEdgePoint(p, std::clamp(s, -1.0, 1.0), q, std::clamp(t, -1.0, 1.0), reach, &manifold);
  }
  return manifold;
}

}  // namespace

BoxManifold FindBoxManifold(const OrientedBox& a, const OrientedBox& b, const Vector3d& direction,
                            const std::optional<ManifoldPoint>& deepest, double reach) {
  const Face face_a = MostAlignedFace(a, -direction);
  const Face face_b = MostAlignedFace(b, direction);
  BoxManifold manifold;
  if (std::max(face_a.cosine, face_b.cosine) < kFaceCosine) {
    manifold = CrossEdges(a, b, direction, reach);
  } else if (face_a.cosine + kTie >= face_b.cosine) {
    manifold = ClipFaces(a, face_a, b, -1, reach);
  } else {
    manifold = ClipFaces(b, face_b, a, 1, reach);
  }
  const auto touches = [](const ManifoldPoint& point) { return point.signed_distance <= 0; };
  if (deepest &&
      std::none_of(manifold.points.begin(), manifold.points.begin() + manifold.count, touches)) {
    // The boxes overlap outside of the clipped face, at an edge that passes its rim.
    manifold.normal = direction;
    manifold.points[0] = *deepest;
    manifold.count = 1;
  }
  return manifold;
}

}  // namespace sap::simulation
