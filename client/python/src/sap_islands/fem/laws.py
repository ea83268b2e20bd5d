"""Elastic laws: energy per volume, stress and stiffness of a deformation gradient F.

Each takes Lamé's parameters μ and λ and behaves as linear elasticity with them at small strain. The
stiffness C is positive semidefinite; what each leaves out of ∂P/∂F for it, it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument
from sap_islands.fem.elements import Density

Law: TypeAlias = Callable[[FloatArray, float, float], Density]

_LEVI_CIVITA = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _LEVI_CIVITA[_i, _j, _k], _LEVI_CIVITA[_i, _k, _j] = 1.0, -1.0


def corotated(F: FloatArray, mu: float, lame: float) -> Density:
    """Linear elasticity in the frame of R, the rotation nearest to F.

    ψ = μ |F - R|² + λ/2 tr²(R'F - I). C holds R fixed, so that it is positive semidefinite. An
    inverted element is driven back.
    """
    left, _, right = np.linalg.svd(F)
    # The last axis is turned where the element is inverted, so that R is a rotation.
    left[:, :, 2] *= np.linalg.det(left @ right)[:, None]
    R = left @ right
    trace = np.einsum("eia,eia->e", R, F) - 3.0
    return Density(
        mu * ((F - R) ** 2).sum(axis=(1, 2)) + 0.5 * lame * trace**2,
        2 * mu * (F - R) + lame * trace[:, None, None] * R,
        _isotropic(R, mu, lame) + mu * np.einsum("ij,ab->iajb", np.eye(3), np.eye(3)),
    )


def neo_hookean(F: FloatArray, mu: float, lame: float) -> Density:
    """Stable neo-Hookean [Smith, de Goes, Kim 2018, eq. 14], with I = |F|² and J = det F.

    ψ = m/2 (I - 3) + k/2 (J - α)² - m/2 log(I + 1), m = 4/3 μ, k = λ + 5/6 μ, α = 1 + 3/4 m/k, less
    its value at rest. It is finite for flat and inverted elements. C is ∂P/∂F of each element
    without its negative eigenvalues, which compressed elements have.
    """
    m, k = 4 / 3 * mu, lame + 5 / 6 * mu
    alpha = 1 + 0.75 * m / k
    columns = F.transpose(0, 2, 1)
    cofactor = np.cross(columns[:, [1, 2, 0]], columns[:, [2, 0, 1]]).transpose(0, 2, 1)
    J = np.einsum("ei,ei->e", F[:, :, 0], cofactor[:, :, 0])
    I1 = (F**2).sum(axis=(1, 2))
    rest = 0.5 * k * (1 - alpha) ** 2 - 0.5 * m * np.log(4.0)
    energy = 0.5 * (m * (I1 - 3) + k * (J - alpha) ** 2 - m * np.log(I1 + 1)) - rest
    stretched = (m * (1 - 1 / (I1 + 1)))[:, None, None]
    stress = stretched * F + (k * (J - alpha))[:, None, None] * cofactor
    f, g = F.reshape(-1, 9), cofactor.reshape(-1, 9)
    turning = np.einsum("ijk,abc,ekc->eiajb", _LEVI_CIVITA, _LEVI_CIVITA, F, optimize=True)
    H = stretched * np.eye(9) + (k * (J - alpha))[:, None, None] * turning.reshape(-1, 9, 9)
    H += np.einsum("e,ei,ej->eij", 2 * m / (I1 + 1) ** 2, f, f) + k * np.einsum("ei,ej->eij", g, g)
    return Density(energy, stress, _positive_part(H).reshape(-1, 3, 3, 3, 3))


def membrane(F: FloatArray, mu: float, lame: float) -> Density:
    """Saint Venant-Kirchhoff of F [E, 3, 2], with the Green strain (F'F - I)/2.

    C keeps the geometric stiffness of tension and leaves out that of compression.
    """
    product = np.einsum("eia,eib->eab", F, F)
    strain = 0.5 * (product - np.eye(2))
    trace = np.einsum("eaa->e", strain)
    S = 2 * mu * strain + lame * trace[:, None, None] * np.eye(2)
    C = _isotropic(F, mu, lame)
    C += mu * np.einsum("eic,ejc,ab->eiajb", F, F, np.eye(2))
    C += np.einsum("ij,eab->eiajb", np.eye(3), _positive_part(S))
    energy = mu * (strain**2).sum(axis=(1, 2)) + 0.5 * lame * trace**2
    return Density(energy, F @ S, C)


def lame_parameters(young: float, poisson: float) -> tuple[float, float]:
    """Lamé's μ and λ of a solid [Pa]."""
    mu = _shear_modulus(young, poisson, 0.5)
    return mu, 2 * mu * poisson / (1 - 2 * poisson)


def plane_stress_parameters(young: float, poisson: float) -> tuple[float, float]:
    """μ, and λ of a sheet without stress across it [Pa]."""
    mu = _shear_modulus(young, poisson, 1.0)
    return mu, 2 * mu * poisson / (1 - poisson)


def _shear_modulus(young: float, poisson: float, limit: float) -> float:
    if not 0 <= young < math.inf:
        raise InvalidArgument(f"young is {young}; it must be finite and >= 0", "young")
    if not -1 < poisson < limit:
        raise InvalidArgument(f"poisson is {poisson}; it must be in (-1, {limit:g})", "poisson")
    return young / (2 * (1 + poisson))


def _isotropic(Q: FloatArray, mu: float, lame: float) -> FloatArray:
    """μ Q_ib Q_ja + λ Q_ia Q_jb, the part of C that the laws of strain in the frame Q share."""
    both: FloatArray = mu * np.einsum("eib,eja->eiajb", Q, Q)
    both += lame * np.einsum("eia,ejb->eiajb", Q, Q)
    return both


def _positive_part(H: FloatArray) -> FloatArray:
    """Symmetric matrices [E, n, n] without their negative eigenvalues."""
    values, vectors = np.linalg.eigh(H)
    positive: FloatArray = (vectors * np.maximum(values, 0)[:, None]) @ vectors.transpose(0, 2, 1)
    return positive
