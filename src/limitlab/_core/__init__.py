"""Foundations of limitlab: declarations of laws, draws, results, costs, files, the registry, formatting.

This package is private. Its public names are re-exported by `limitlab`, `limitlab.laws` and `limitlab.lab`.
"""
