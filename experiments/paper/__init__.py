"""The experiments of the paper, and beyond: `python -m experiments.paper` runs all of them.

T. Teshima, M. Xu, I. Sato, M. Sugiyama. "Clipped Matrix Completion: A Remedy for Ceiling Effects."
AAAI Conference on Artificial Intelligence, 2019.
"""
