"""The quantities of the diagnosis once more, from dense matrices: slow and clear."""

import itertools

import numpy as np
from scipy.optimize import linprog


def bases(M, r):
    U, _, Vt = np.linalg.svd(M)
    return U[:, :r], Vt[:r].T


def projector(U, V):
    """Return P_T as a matrix on vec(Z), row by row."""
    p, q = U @ U.T, V @ V.T
    eye1, eye2 = np.eye(len(p)), np.eye(len(q))
    return np.kron(p, eye2) + np.kron(eye1, q) - np.kron(p, q)


def importance(U, V, mask):
    """Return the largest eigenvalue of P_T P_mask P_T."""
    P = projector(U, V)
    return np.linalg.eigvalsh(P @ (mask.ravel()[:, None] * P))[-1]


def margin(U, V, mask):
    """Return the smallest eigenvalue of P_T P_mask P_T on T."""
    P = projector(U, V)
    values = np.linalg.eigvalsh(P @ (mask.ravel()[:, None] * P))
    return np.sort(values)[P.shape[0] - round(np.trace(P))]


def losses(Z, beyond, tie_above, tie_below):
    """Return Z minus the information operator of Z."""
    kept = np.where(beyond, 0.0, Z)
    kept = np.where(tie_above, np.maximum(Z, 0), kept)
    return Z - np.where(tie_below, np.minimum(Z, 0), kept)


def gain(U, V, Z, kinds, norm):
    """Return |P_T loss(Z)| / |Z| (for the operator norm: without P_T)."""
    lost = losses(Z, *kinds)
    if norm != 2:
        lost = (projector(U, V) @ lost.ravel()).reshape(Z.shape)
    size = {
        "fro": np.linalg.norm,
        2: lambda A: np.linalg.norm(A, 2),
        "inf": lambda A: np.abs(A).max(),
    }
    return size[norm](lost) / size[norm](Z)


def rho_inf(U, V, beyond, tie_above, tie_below):
    """Return rho_inf by linear programs: one for each cell, sign pattern of the ties and sign."""
    P = projector(U, V)
    values, vectors = np.linalg.eigh(P)
    basis = vectors[:, values > 0.5]  # Z = basis @ t
    ties = np.flatnonzero((tie_above | tie_below).ravel())
    up = tie_above.ravel()
    best = 0.0
    for signs in itertools.product((-1, 1), repeat=len(ties)):
        # of a tie at a ceiling the negative part is lost, of one at a floor the positive part
        lost = beyond.ravel().copy()
        for cell, sign in zip(ties, signs, strict=True):
            lost[cell] = (sign < 0) == up[cell]
        rows = [*basis, *-basis, *(-s * basis[c] for c, s in zip(ties, signs, strict=True))]
        b = np.concatenate([np.ones(2 * len(basis)), np.zeros(len(ties))])
        for target in P:
            c = -(target * lost) @ basis
            found = linprog(c, A_ub=np.array(rows), b_ub=b, bounds=(None, None))
            best = max(best, -found.fun)
    return best


def best_gain(U, V, kinds, norm, rng, tries=60):
    """Return a lower bound on the supremum by random starts and coordinate-free climbing."""
    P = projector(U, V)
    shape = (len(U), len(V))
    best = 0.0
    for _ in range(tries):
        Z = (P @ rng.standard_normal(P.shape[0])).reshape(shape)
        value, step = gain(U, V, Z, kinds, norm), 0.5
        for _ in range(150):
            other = Z / np.linalg.norm(Z) + step * (P @ rng.standard_normal(P.shape[0])).reshape(
                shape
            )
            found = gain(U, V, other, kinds, norm)
            Z, value, step = (other, found, step) if found > value else (Z, value, step * 0.97)
        best = max(best, value)
    return best
